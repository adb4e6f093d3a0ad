# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Take a line apart before its meaning is looked at: launcher prefixes, escapes, NCCL's own lines.

NCCL shares stdout with the table, so its line may begin in the middle of a row. It is cut out of any
position; what stood before it is handed back.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

# A longer line is cut: no line of the tool or of NCCL comes near, and memory must stay bounded.
MAX_LINE_CHARS = 65536
# What NCCL writes before its message fits in this many characters (host names end at 255).
_MAX_LEFT = 640
_MAX_CACHE = 4096

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])")

# Prefix forms of the launchers, each measured: facts nccl-gate 1.8 rule 1.
_PREFIX = re.compile(
    r"""(?:
    \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)      # kubectl, CRI
      (?:[ ](?:stdout|stderr)[ ][FP])?[ ]?
    | \[pod/[^\]\s]{1,512}\][ ]                                                    # kubectl logs --prefix
    | \[[A-Z][a-z]{2}[ ][A-Z][a-z]{2}[ ]+\d{1,2}[ ][\d:]{8}[ ]\d{4}\](?=\[)        # Open MPI 5 timestamp
    | \[(?:[^\]\s@]{1,512}@)?\d{1,9},(?P<mpi>\d{1,9})\](?:\[[^\]\s]{1,512}\])?<std(?:out|err|diag)>:[ ]?  # tag-output
    | [ ]*(?P<srun>\d{1,7}):(?:[ ]|$|(?=[\#\[]))                                   # srun -l
    | \[(?P<tag>\d{1,7})\][ ](?!NCCL)                                              # [rank]
    | worker-(?P<worker>\d{1,7}):[ ]
    | [A-Za-z0-9][\w.-]{0,254}:[ ](?=\#|[ ]{2,}\d+[ ]+\d+[ ]+[a-z])                # pdsh, clush
    )""",
    re.VERBOSE,
)
_LEFT = re.compile(
    r"(?P<time>\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\] )?"
    r"(?P<host>[^\s:]{1,255}):\d{1,10}:\d{1,10} \[(?P<dev>-?\d{1,6})\] (?:\S{1,255}:\d{1,7} )?$"
)
_MARK = re.compile(r"NCCL (INFO|WARN|TRACE|CALL|ABORT|ENV)(?: |$)")
# A table value glued to the host name that follows it.
_GLUED = re.compile(r"(-1|\d+(?:\.\d+)?(?:e[+-]\d+)?|N/A|nan|inf)(?=[A-Za-z])")


@dataclass(frozen=True)
class Origin:
    """Who wrote an NCCL line. ``before`` is the part of the line that is not NCCL's."""

    before: str
    host: str
    device: int | None
    rank: int | None
    time: str


def clean(text: str) -> str:
    """Without escapes, carriage returns and NUL bytes."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return text.replace("\r", "").replace("\0", "")


def strip_prefix(text: str) -> tuple[int | None, str]:
    """The rank (or task) that a launcher's label names, and the line without labels."""
    rank = None
    for _nesting in range(5):
        match = _PREFIX.match(text)
        if match is None or not match.end():
            break
        label = match["mpi"] or match["srun"] or match["tag"] or match["worker"]
        rank = int(label) if label else rank
        text = text[match.end():]
    return rank, text


class NcclCutter:
    """Cuts NCCL's lines out. Their left part repeats by the thousand, so it is remembered."""

    def __init__(self) -> None:
        self._known: dict[str, Origin | None] = {}

    def cut(self, line: str) -> tuple[Origin, str, str] | None:
        """(origin, INFO|WARN|.., message), or None if this is no line of NCCL's logger."""
        start = line.find("NCCL INFO ")
        if start >= 0:
            level, message = "INFO", line[start + 10:]
        else:
            match = _MARK.search(line)
            if match is None:
                return None
            start, level, message = match.start(), match[1], line[match.end():]
        left = line[:start]
        if left in self._known:
            origin = self._known[left]
        else:
            origin = self._read(left)
            if len(self._known) >= _MAX_CACHE:
                self._known.clear()
            if len(left) <= _MAX_LEFT:
                self._known[left] = origin
        return None if origin is None else (origin, level, message)

    @staticmethod
    def _read(left: str) -> Origin | None:
        rank, text = strip_prefix(left)
        head, text = text[:-_MAX_LEFT], text[-_MAX_LEFT:]
        match = _LEFT.search(text)
        if match is None:
            return None
        before, host = head + text[:match.start()], match["host"]
        if before.strip():
            glued = _GLUED.match(host)
            if glued:
                before, host = before + glued[1], host[glued.end():]
        return Origin(before, host, int(match["dev"]), rank, (match["time"] or "").strip("[] "))
