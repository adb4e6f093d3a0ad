# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Header, device and footer lines of the tool, and the command that a log may begin with."""
from __future__ import annotations

import re
import typing as t

from .model import Device, Request, Result
from .table import columns_of, read_layout

if t.TYPE_CHECKING:
    from .table import RowBuilder

MAX_DEVICES = 4096
MAX_RANKS_SEEN = 1 << 17
_MAX_FOOTERS = 1024

_OPTIONS = re.compile(
    r"nThread (\d{1,9}) nGpus (\d{1,9}) minBytes (\d{1,19}) maxBytes (\d{1,19}) step: (\d{1,19})\((\w{1,10})\)"
)
_COUNTS = {
    "warmup_iters": re.compile(r"warmup iters: (\d{1,9})"),
    "iters": re.compile(r"(?<!warmup )(?<!agg )iters: (\d{1,9})"),
    "validation": re.compile(r"validation: (\d{1,9})"),
    "graph": re.compile(r"graph: (\d{1,9})"),
}
_RANK = re.compile(
    r"Rank\s+(\d{1,7})(?:\s+Group\s+(\d{1,7}))?(?:\s+Pid\s+(\d{1,10}))?\s+on\s+(\S{1,255})"
    r"\s+device\s+(\d{1,5})\s+\[([^\]]{0,40})\]\s?(.{0,200})"
)
_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d{1,12})\s+(OK|FAILED)\b")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*(\S{1,40})(?:\s+(OK|FAILED)\b)?")
_TESTS_VERSION = re.compile(r"nccl-tests version (\S{1,40})")
_NCCL_VERSION = re.compile(r"NCCL version (\d\S{0,40})")
_REDUCED = re.compile(r"Reducing maxBytes to (\d{1,19})")
_PROGRAM = re.compile(r"(?:^|[\s/])(\w{1,40})_perf(?:_mpi)?(?=\s|$)")
_TASKS = re.compile(r"(?:^|\s)(?:-np|-n|--ntasks|--np)[ =](\d{1,7})(?=\s)")
_SLURM_TASKS = re.compile(r"^(?:export )?SLURM_NTASKS=(\d{1,7})\s*$")
_SIZE_OPTION = re.compile(r"\s(-b|--minbytes|-e|--maxbytes)[ =]?(\d+(?:\.\d+)?)([KMGkmg]?)(?=\s|$)")
# nccl-tests src/common.cu parsesize: K, M and G are binary.
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class HeaderReader:
    """Fills request, devices, versions and footers of one result."""

    def __init__(self, result: Result, rows: RowBuilder) -> None:
        self._result = result
        self._rows = rows
        self.option_lines = 0
        self.device_headers = 0
        self.column_headers = 0
        self.broken_headers = 0
        self.concluded = 0
        self.ranks: set[int] = set()
        self.rank_zeros = 0
        self.groups: set[int] = set()
        self.hosts: dict[str, int] = {}

    def comment(self, text: str) -> None:
        """A line that begins with ``#``, or one of 1.0's header lines, which do not."""
        if columns_of(text):
            self._columns(text)
        elif "Rank" in text and self._rank(text):
            pass
        elif " : " in text or "bandwidth" in text:
            self._footer(text)
        else:
            self._header(text)

    def _columns(self, text: str) -> None:
        layout = read_layout(text)
        if layout is None:
            self.broken_headers += 1
            return
        self.column_headers += 1
        if self._rows.layout is None or self._rows.layout == layout:
            self._rows.layout = layout
            self._result.layout = layout.name
        else:
            # Another tool's table in the same log: the rows that follow are read by the newest header.
            self._rows.layout = layout

    def _rank(self, text: str) -> bool:
        match = _RANK.search(text)
        if match is None:
            return False
        rank, group, pid, host, number, pci, name = match.groups()
        ran = self._result.ran
        self.rank_zeros += int(rank) == 0
        if len(self.ranks) < MAX_RANKS_SEEN:
            self.ranks.add(int(rank))
        if len(self.groups) < MAX_RANKS_SEEN:
            self.groups.add(int(group or 0))
        if len(self.hosts) < MAX_RANKS_SEEN:
            self.hosts[host] = self.hosts.get(host, 0) + 1
        if len(ran.devices) < MAX_DEVICES:
            ran.devices.append(Device(int(rank), int(group or 0), int(pid) if pid else None, host, int(number), pci,
                                      name.strip()))
        return True

    def _footer(self, text: str) -> None:
        result = self._result
        match = _BOUNDS.search(text)
        if match:
            result.out_of_bounds_failed |= match[2] == "FAILED" or int(match[1]) > 0
            if len(result.out_of_bounds) < _MAX_FOOTERS:
                result.out_of_bounds.append(int(match[1]))
            return
        match = _AVERAGE.search(text)
        if match and len(result.average_printed) < _MAX_FOOTERS:
            try:
                result.average_printed.append(float(match[1]))
            except ValueError:
                return
            if match[2]:
                result.average_words.append(match[2])

    def _header(self, text: str) -> None:
        result, request = self._result, self._result.request
        if "nThread" in text:
            self._options(text)
        elif "Using devices" in text:
            self.device_headers += 1
        elif "Collective test starting" in text or "Collective test concluded" in text:
            self._collective(text)
        elif "nccl-tests version" in text:
            match = _TESTS_VERSION.search(text)
            result.tests_version = match[1] if match else ""
        elif "Reducing maxBytes" in text:
            match = _REDUCED.search(text)
            request.reduced_max_bytes = int(match[1]) if match else 0
        elif "NCCL version" in text:
            self.nccl_version(text)

    def nccl_version(self, text: str) -> None:
        match = _NCCL_VERSION.search(text)
        if match:
            self._result.nccl_version = match[1]

    def _options(self, text: str) -> None:
        self.option_lines += 1
        match, request = _OPTIONS.search(text), self._result.request
        if match is None:
            return
        request.threads, request.gpus_per_thread = int(match[1]), int(match[2])
        request.min_bytes, request.max_bytes = int(match[3]), int(match[4])
        request.step, request.step_kind = int(match[5]), match[6]
        for name, pattern in _COUNTS.items():
            found = pattern.search(text)
            if found:
                setattr(request, name, int(found[1]))

    def _collective(self, text: str) -> None:
        self.concluded += "concluded" in text
        name = text.rpartition(":")[2].strip()
        if name:
            self._result.ran.collective = collective_of(name)
            self._result.ran.collective_source = "named"

    def command(self, text: str) -> None:
        """A command line or Slurm variable that tells what was asked for."""
        request = self._result.request
        match = _SLURM_TASKS.match(text)
        if match:
            request.ranks = int(match[1])
        elif "_perf" in text and (" -b " in text or "mpirun" in text or "srun" in text):
            read_command(text, request)


def collective_of(program: str) -> str:
    """``/opt/x/all_reduce_perf_mpi`` -> ``all_reduce``."""
    match = _PROGRAM.search(program)
    return match[1] if match else program.strip()[:40]


def read_command(text: str, request: Request) -> None:
    """The launcher's rank count, the program and its sizes, as far as a command line shows them."""
    program = _PROGRAM.search(text)
    if program is None:
        return
    request.command = text.strip()[:1024]
    request.collective = program[1]
    tasks = _TASKS.search(text[:program.start() + 1])
    if tasks:
        request.ranks = int(tasks[1])
    for option, value, unit in _SIZE_OPTION.findall(text[program.end():]):
        size = int(float(value[:20]) * _UNITS[unit.lower()])
        if option in ("-b", "--minbytes"):
            request.min_bytes = request.min_bytes or size
        else:
            request.max_bytes = request.max_bytes or size
