# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The entrance: any log of nccl-tests, text or JSON, whole or in pieces -> one `Result`.

Nothing here raises on any input, and memory does not grow with the log: lines are cut at a bound,
lists are bounded, beyond them only sums and extremes are kept.
"""
from __future__ import annotations

import codecs
import typing as t

from .checks import finish
from .errors import ErrorReader
from .header import HeaderReader
from .json_report import JsonReport
from .json_scan import JsonScanner
from .lines import MAX_LINE_CHARS, NcclCutter, clean, strip_prefix
from .model import Result
from .rows import RowSummary
from .table import CutHeader, RowBuilder, is_value
from .transport import TransportReader

CHUNK_BYTES = 1 << 18
_BATCH_LINES = 2048
# The lab's stand-in says so in every artefact; a real log never contains the word.
SIMULATED_WORD = "SIMULATED"
_JSON_BEGIN = '{"version"'
_DIGITS = frozenset("0123456789")


class LogParser:
    """``feed`` bytes or text, then ``close``."""

    def __init__(self) -> None:
        self.result = Result()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""
        self._skip = False
        self._builder = RowBuilder()
        self._header = HeaderReader(self.result, self._builder)
        self._rows = RowSummary(self.result)
        self._transport = TransportReader(self.result)
        self._errors = ErrorReader(self.result)
        self._cutter = NcclCutter()
        self._cut: CutHeader | None = None
        self._json: JsonScanner | None = None
        self._reports: list[JsonReport] = []

    def feed(self, data: bytes | str) -> None:
        text = data if isinstance(data, str) else self._decoder.decode(data)
        self.result.bytes += len(data)
        while text:
            text = self._feed_json(text) if self._json is not None else self._feed_text(text)

    def close(self) -> Result:
        self.feed(self._decoder.decode(b"", True))
        if self._tail:
            tail, self._tail = self._tail, ""
            self._block(tail, [tail])
        self._builder.abort()
        self._lose_cut()
        finish(self.result, self._header, self._builder, self._rows, self._reports)
        return self.result

    # -- text -----------------------------------------------------------------------------------------

    def _feed_text(self, text: str) -> str:
        """Handle all whole lines; returns what belongs to a JSON report that begins in them."""
        if self._skip:
            end = text.find("\n")
            if end < 0:
                return ""
            text, self._skip = text[end + 1:], False
        text = self._tail + text
        start = self._json_start(text)
        if start >= 0:
            head, rest = text[:start], text[start:]
            self._tail = ""
            if head:
                self._block(head, head.split("\n"))
            self._begin_json()
            return rest
        lines = text.split("\n")
        self._tail = lines.pop()
        if len(self._tail) > MAX_LINE_CHARS:
            lines.append(self._tail[:MAX_LINE_CHARS])
            self._tail, self._skip = "", True
        if lines:
            self._block(text, lines)
        return ""

    def _json_start(self, text: str) -> int:
        """Where a line begins that is a JSON report: ``{"version":`` or, at the very start, ``{``."""
        if not self.result.lines and text.lstrip()[:1] == "{":
            return text.index("{")
        at = text.find(_JSON_BEGIN)
        while at >= 0 and text[text.rfind("\n", 0, at) + 1:at].strip():
            # Quoted within a line: look on from the next one.
            end = text.find("\n", at)
            at = text.find(_JSON_BEGIN, end) if end >= 0 else -1
        return at

    def _block(self, text: str, lines: list[str]) -> None:
        result = self.result
        if SIMULATED_WORD in text:
            result.simulated = True
        self._errors.prepare(text)
        escapes = "\x1b" in text or "\r" in text or "\0" in text
        for line in lines:
            result.lines += 1
            if not line:
                continue
            if len(line) > MAX_LINE_CHARS:
                line = line[:MAX_LINE_CHARS]
            if escapes:
                line = clean(line)
            if "NCCL " in line and self._nccl(line):
                continue
            self._plain(line, None)

    def _nccl(self, line: str) -> bool:
        cut = self._cutter.cut(line)
        if cut is None:
            return False
        origin, level, message = cut
        if CutHeader.begins(origin.before):
            self._lose_cut()
            self._builder.abort()
            self._cut = CutHeader(origin.before, origin.host)
        elif origin.before.strip():
            self._plain(origin.before, origin.rank)
        if level == "INFO":
            self._transport.info(message)
            if message.startswith("NCCL version"):
                self._header.nccl_version(message)
        self._errors.nccl(origin, level, message, line)
        return True

    def _plain(self, line: str, rank: int | None) -> None:
        text = line.strip()
        if not text:
            return
        if self._cut is not None and self._join(line):
            return
        first = text[0]
        if first in _DIGITS and ":" not in text[:16]:
            self._values(text, rank)
            return
        if first != "#":
            rank, text = strip_prefix(line)
            text = text.strip()
            if not text:
                return
            first = text[0]
        if first == "#":
            self._builder.abort()
            self._comment(text, rank)
        elif first in _DIGITS or text.startswith(("N/A", "-", "nan", "inf")):
            self._values(text, rank)
        else:
            self._other(text, rank)

    def _join(self, line: str) -> bool:
        """Whether ``line`` is the rest of the column header that NCCL's lines cut."""
        cut = t.cast(CutHeader, self._cut)
        whole = cut.joined(strip_prefix(line)[1])
        if whole:
            self._cut = None
            self._comment(whole, None)
        elif cut.tries == 0:
            self._lose_cut()
        return bool(whole)

    def _lose_cut(self) -> None:
        if self._cut is not None:
            self._cut = None
            self._header.broken_headers += 1

    def _values(self, text: str, rank: int | None) -> None:
        tokens = text.split()
        if not tokens[0].isdigit() and not is_value(tokens[0]):
            self._other(text, rank)
            return
        if not self._builder.pending and len(tokens) < 3:
            return
        row = self._builder.add(tokens)
        if row is not None:
            self._rows.add(row)

    def _comment(self, text: str, rank: int | None) -> None:
        if text.startswith("# error:"):
            if not self._errors.plain(text[8:].strip(), rank) and len(self.result.notes) < 64:
                self.result.notes.append(f"last NCCL error: {text[8:200].strip()}")
            return
        self._header.comment(text)

    def _other(self, text: str, rank: int | None) -> None:
        self._builder.abort()
        if self._errors.plain(text, rank):
            return
        # The header and footer lines of 1.0 bear no "#".
        if text.startswith(("nThread ", "Out of bounds", "Avg bus", "NCCL version")):
            self._header.comment(text)
        elif "_perf" in text or text.startswith(("SLURM_NTASKS", "export SLURM")):
            self._header.command(text)

    # -- JSON -----------------------------------------------------------------------------------------

    def _begin_json(self) -> None:
        report = JsonReport(self.result, self._header, self._rows, self._errors)
        if len(self._reports) < 64:
            self._reports.append(report)
        self._json = JsonScanner(report)

    def _feed_json(self, text: str) -> str:
        scanner = t.cast(JsonScanner, self._json)
        if SIMULATED_WORD in text:
            self.result.simulated = True
        self.result.lines += 1
        rest = scanner.feed(text)
        if scanner.state != "open":
            if scanner.state == "bad":
                # Its rows so far count; what is lost is told by the missing end.
                self._builder.broken += 1
            self._json = None
            return rest
        return ""


def parse_text(data: str | bytes) -> Result:
    """A whole log at once."""
    parser = LogParser()
    parser.feed(data)
    return parser.close()


def parse_lines(lines: t.Iterable[str | bytes]) -> Result:
    """A log line by line, with or without its line ends."""
    parser = LogParser()
    batch: list[str] = []
    for line in lines:
        text = line if isinstance(line, str) else line.decode("utf-8", "replace")
        batch.append(text if text.endswith("\n") else text + "\n")
        if len(batch) >= _BATCH_LINES:
            parser.feed("".join(batch))
            batch.clear()
    parser.feed("".join(batch))
    return parser.close()


def parse_file(stream: t.BinaryIO) -> Result:
    """A log from an open binary file, read in chunks."""
    parser = LogParser()
    while True:
        chunk = stream.read(CHUNK_BYTES)
        if not chunk:
            return parser.close()
        parser.feed(chunk)
