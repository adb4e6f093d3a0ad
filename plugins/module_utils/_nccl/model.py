# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What an nccl-tests log says (`Result`), what is wanted of it, and what the verdict is.

Units: sizes in bytes, times in microseconds, bandwidth in GB/s (1e9 bytes/s, as nccl-tests prints).
"""
from __future__ import annotations

import dataclasses
import math
import typing as t
from dataclasses import dataclass, field

State = t.Literal[
    "PASS", "SLOW", "UNVERIFIED", "INCOMPLETE", "INVALID", "HANG", "LAUNCH", "CRASH", "WRONG",
]
# How good a state is: 0 is the only pass, 1 a whole run with a shortcoming, 2 no usable result.
# Losing a part of a log may only move its verdict to an equal or a higher number.
STATE_RANK: dict[State, int] = {
    "PASS": 0, "SLOW": 1, "UNVERIFIED": 1,
    "INCOMPLETE": 2, "INVALID": 2, "HANG": 2, "LAUNCH": 2, "CRASH": 2, "WRONG": 2,
}

Verification = t.Literal["verified", "unverified", "partly", "none"]
Role = t.Literal["cause", "follower", "wrapper", "note"]


@dataclass
class Cell:
    """One placement (out-of-place or in-place) of a row. ``wrong`` is None where the log says N/A."""

    time_us: float
    algbw_gbps: float
    busbw_gbps: float
    wrong: float | None
    extra: dict[str, float] = field(default_factory=dict)
    # Mean time of each process over the iterations (JSON with -I): the tool's own straggler data.
    process_us: list[float] = field(default_factory=list)


@dataclass
class Row:
    size_bytes: int
    count: int
    type: str
    redop: str
    root: int | None
    out_of_place: Cell | None
    in_place: Cell | None


@dataclass
class Request:
    """What was asked for, as the header, the JSON ``config`` or a command line in the log says."""

    collective: str = ""
    command: str = ""
    min_bytes: int | None = None
    max_bytes: int | None = None
    step: int | None = None
    step_kind: str = ""
    threads: int | None = None
    gpus_per_thread: int | None = None
    warmup_iters: int | None = None
    iters: int | None = None
    validation: int | None = None
    graph: int | None = None
    ranks: int | None = None
    reduced_max_bytes: int | None = None


@dataclass
class Device:
    rank: int
    group: int
    pid: int | None
    host: str
    device: int
    pci: str
    name: str


@dataclass
class Ran:
    """What ran. ``ranks`` is what we believe, ``ranks_source`` says why: ``listed`` (Rank lines),
    ``nccl`` (NCCL's own lines) or ``bandwidth`` (busbw / algbw); None is unknown."""

    collective: str = ""
    collective_source: str = ""
    ranks: int | None = None
    ranks_source: str = ""
    ranks_listed: int = 0
    ranks_inferred: int | None = None
    ranks_nccl: int | None = None
    rank_max: int = -1
    groups: int = 0
    nodes: int | None = None
    hosts: list[str] = field(default_factory=list)
    gpu_names: list[str] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    min_bytes: int | None = None
    max_bytes: int | None = None
    types: list[str] = field(default_factory=list)
    redops: list[str] = field(default_factory=list)


@dataclass
class Transport:
    """What NCCL's INFO lines prove about the way the data went."""

    networks: dict[str, int] = field(default_factory=dict)
    hcas: dict[str, str] = field(default_factory=dict)
    netdevs: list[str] = field(default_factory=list)
    bootstrap: str = ""
    plugin: str = ""
    no_ib_device: bool = False
    relaxed_ordering: bool | None = None
    channels: int = 0
    via: dict[str, int] = field(default_factory=dict)
    gdr_channels: int = 0
    host_memory_channels: int = 0
    gdr: bool | None = None
    gdr_hcas: dict[str, bool] = field(default_factory=dict)
    nvls: bool | None = None
    mnnvl: bool | None = None
    clique_size: int | None = None
    algorithms: dict[str, int] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    info_lines: int = 0


@dataclass
class ErrorLine:
    """One line that reports trouble. ``state`` is what it makes of the run, empty for a mere note;
    ``always``: the run fails by it even if it reached its footer."""

    id: str
    text: str
    line: int
    role: Role
    category: str
    state: str
    meaning: str
    action: str
    source: str
    always: bool = False
    host: str = ""
    rank: int | None = None
    device: int | None = None
    hca: str = ""
    peer: str = ""
    time: str = ""
    count: int = 1


@dataclass
class Culprit:
    """Where the first error was seen. The host that noticed is not always the one to blame."""

    host: str = ""
    rank: int | None = None
    device: int | None = None
    hca: str = ""
    peer: str = ""
    text: str = ""


@dataclass
class Finding:
    """A contradiction or a gap in the log: ``state`` is the best state it leaves, empty for a note."""

    id: str
    state: str
    text: str


@dataclass
class Result:
    source: str = "text"
    layout: str = ""
    tests_version: str = ""
    nccl_version: str = ""
    json_version: int | None = None
    request: Request = field(default_factory=Request)
    ran: Ran = field(default_factory=Ran)
    rows: list[Row] = field(default_factory=list)
    row_count: int = 0
    rows_dropped: int = 0
    broken_rows: int = 0
    runs: int = 0
    ended: int = 0
    cycles: int = 0
    peak_busbw_gbps: float | None = None
    peak_size_bytes: int | None = None
    average_printed: list[float] = field(default_factory=list)
    average_words: list[str] = field(default_factory=list)
    average_computed: float | None = None
    out_of_bounds: list[int] = field(default_factory=list)
    out_of_bounds_failed: bool = False
    wrong_cells: int = 0
    wrong_largest: float | None = None
    checked_cells: int = 0
    unchecked_cells: int = 0
    verification: Verification = "none"
    transport: Transport = field(default_factory=Transport)
    errors: list[ErrorLine] = field(default_factory=list)
    error_count: int = 0
    findings: list[Finding] = field(default_factory=list)
    simulated: bool = False
    notes: list[str] = field(default_factory=list)
    lines: int = 0
    bytes: int = 0

    def to_dict(self) -> dict[str, t.Any]:
        """Plain values that strict JSON can carry."""
        return _plain(dataclasses.asdict(self))


@dataclass
class Limit:
    """What the bandwidth is measured against, with the rule and all inputs that gave the number."""

    busbw_gbps: float
    rule: str = ""
    inputs: dict[str, t.Any] = field(default_factory=dict)
    pass_fraction: float = 0.90
    fail_fraction: float = 0.80
    upper_bound: float | None = None


@dataclass
class Expected:
    """What the caller asked for and saw; None is "not known", and then it is not compared."""

    collective: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    hosts: tuple[str, ...] | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    min_busbw_gbps: float | None = None
    exit_code: int | None = None
    timed_out: bool = False
    allow_simulated: bool = False
    allow_socket: bool = False


@dataclass
class Verdict:
    """``band`` is the bandwidth alone (pass, slow, fail, implausible; empty when there was no limit),
    whatever else decided the state. ``ratio`` is peak / limit."""

    state: State
    reason: str
    limit: Limit | None = None
    ratio: float | None = None
    band: str = ""
    culprit: Culprit | None = None
    simulated: bool = False
    details: dict[str, t.Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The state as it may be shown: a verdict of the lab never looks like a real one."""
        return f"{self.state} (SIMULATED)" if self.simulated else self.state

    def to_dict(self) -> dict[str, t.Any]:
        return {**_plain(dataclasses.asdict(self)), "label": self.label}


def _plain(value: t.Any) -> t.Any:
    """JSON has no nan and no infinity: they become their names."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
