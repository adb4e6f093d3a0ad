# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own printf model of nccl-tests: each layout of the tool, with invented figures.

Times follow latency + size / bandwidth, so every figure is consistent with the others. The files under
``fixtures/`` were written by this module (``python -m tests.unit.plugins.module_utils._nccl.rendering``).
"""
from __future__ import annotations

import dataclasses
import json
import typing as t
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SHARED = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")


@dataclass(frozen=True)
class Spec:
    """One run. ``layout`` is the version of the tool that would print it so."""

    layout: str = "2.19.6"
    collective: str = "all_reduce"
    nodes: int = 2
    each: int = 8
    min_bytes: int = 16 * MIB
    max_bytes: int = 4 * GIB
    factor: int = 4
    bandwidth: float = 190.0
    latency_us: float = 40.0
    checked: bool = True
    wrong_at: int = 0
    single_process: bool = False
    timestamps: bool = False
    per_iteration: bool = False
    iters_column: bool = False
    groups: int = 1
    sizes: tuple[int, ...] = ()
    cycles: int = 1
    average_word: str = ""
    simulated: bool = False

    @property
    def ranks(self) -> int:
        return self.nodes * self.each

    @property
    def version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.layout.split("."))

    def sweep(self) -> tuple[int, ...]:
        if self.sizes:
            return self.sizes * self.cycles
        sizes, size = [], self.min_bytes
        while size <= self.max_bytes:
            sizes.append(size)
            size *= self.factor
        return tuple(sizes) * self.cycles


@dataclass(frozen=True)
class Cell:
    time: float
    algbw: float
    busbw: float
    wrong: int | None


def factor(spec: Spec) -> float:
    ranks = spec.ranks // spec.groups
    if spec.collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if spec.collective in SHARED else 1.0


def cells(spec: Spec, size: int, index: int) -> tuple[Cell, Cell]:
    """Out-of-place and in-place; the second is a hair slower, as if measured."""
    result = []
    for place in (0, 1):
        rate = spec.bandwidth / max(factor(spec), 1e-9)
        time = spec.latency_us + size / (rate * 1e3) * (1 + 0.002 * place + 0.001 * (index % 3))
        if spec.ranks == 1:
            time = 12.0
        algbw = size / time / 1e3
        check: int | None = 4096 if spec.wrong_at == size and not place else 0
        if not spec.checked or (place and spec.collective in ("alltoall", "sendrecv")):
            check = None
        result.append(Cell(time, algbw, algbw * factor(spec), check))
    return result[0], result[1]


def fitted(value: float, width: int) -> str:
    """2.17.3 drops decimals to stay in the column (src/util.cu getFloatStr)."""
    power = len(str(int(value))) if value >= 1 else 0
    if power < width - 2:
        return f"{value:{width}.2f}"
    if power < width - 1:
        return f"{value:{width}.1f}"
    return f"{value:{width}.0f}" if power < width + 1 else f"{value:{width}.1e}"


def old_time(value: float) -> str:
    if value >= 10000:
        return f"{value:7.0f}"
    return f"{value:7.1f}" if value >= 100 else f"{value:7.2f}"


def root_of(spec: Spec) -> int:
    return 0 if spec.collective in ("broadcast", "reduce", "gather", "scatter") else -1


def redop_of(spec: Spec) -> str:
    return "sum" if spec.collective in ("all_reduce", "reduce", "reduce_scatter") else "none"


def head(spec: Spec) -> list[str]:
    version, lines = spec.version, []
    if version < (2,):
        return [_options(spec).lstrip("# "), "NCCL version 2.4.8+cuda10.0", "# NCCL Tests compiled with NCCL 2.4",
                "# Using devices", *devices(spec)]
    if version >= (2, 17, 4):
        lines.append(f"# nccl-tests version {spec.layout} nccl-headers=22903 nccl-library=22903")
    if version >= (2, 16, 7):
        lines.append(f"# Collective test starting: {spec.collective}_perf")
    lines.append(_options(spec))
    if spec.simulated:
        lines.append("# SIMULATED: not a measurement of GPUs")
    if spec.per_iteration:
        lines.append("# Per-Iteration Report: CUDA event timing; i_* uses max over process rows ")
    return [*lines, "#", "# Using devices", *devices(spec)]


def _options(spec: Spec) -> str:
    version = spec.version
    gpus = spec.each if spec.single_process else 1
    text = (f"# nThread 1 nGpus {gpus} minBytes {min(spec.sweep())} maxBytes {max(spec.sweep())} "
            f"step: {spec.factor}(factor) warmup iters: 5 iters: 20 ")
    if version >= (2, 13):
        return (text + f"agg iters: 1 validation: {int(spec.checked)} graph: 0"
                + (" unalign: 0" if version >= (2, 18, 2) else ""))
    return text + f"validation: {int(spec.checked)} "


def devices(spec: Spec) -> list[str]:
    lines, version = [], spec.version
    for rank in range(spec.ranks):
        host, number = f"gpu{rank // spec.each + 1:02d}", rank % spec.each
        pci = f"0000:{0x1a + 8 * number:02x}:00" if version >= (2, 14, 1) else f"0x{0x1a + 8 * number:02x}"
        group = f" Group {rank % spec.groups:2d}" if version >= (2, 13, 4) else ""
        pid = f" Pid {31000 + rank:6d}" if version >= (2,) else ""
        gap = "#  " if version >= (2, 13, 4) else "#   "
        name = "SIMULATED GPU" if spec.simulated else "NVIDIA Example GPU"
        lines.append(f"{gap}Rank {rank:2d}{group}{pid} on {host:>10} device {number:2d} [{pci}] {name}")
    return lines


def columns(spec: Spec) -> list[str]:
    version = spec.version
    if version < (2,):
        half = f"{'time':>7}  {'algbw':>5}  {'busbw':>5}  {'res':>7}"
        return ["", "#                                                 out-of-place                    in-place",
                f"# {'bytes':>10}  {'N':>12}  {'type':>6}  {'op':>6}  {half}  {half}"]
    prefix = f"# {'size':>10}  {'count':>12}  {'type':>{8 if version >= (2, 10) else 6}}"
    if version >= (2, 13) or spec.collective in ("all_reduce", "reduce", "reduce_scatter", "alltoall"):
        prefix += f"  {'redop':>6}"
    if version >= (2, 13) or spec.collective in ("reduce", "broadcast"):
        prefix += f"  {'root':>6}"
    check = "#wrong" if version >= (2, 13) else "error"
    half = f"{'time':>7}  {'algbw':>6}  {'busbw':>6}  {check:>5}"
    if spec.per_iteration:
        half += f"  {'i_min':>7}  {'i_max':>7}  {'i_p99':>7}  {'i_cv%':>7}"
    tail = "  #iters" if spec.iters_column else ""
    tail += f" {'timestamp':>19}" if spec.timestamps else ""
    return ["#", "#                                out-of-place                       in-place          ",
            f"{prefix}  {half}  {half}{tail}",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
            "(GB/s)"]


def row(spec: Spec, size: int, index: int) -> tuple[str, str, str]:
    """The three parts that the tool prints one after the other."""
    version, pair = spec.version, cells(spec, size, index)
    count = size // 4 // (spec.ranks if spec.collective in (*SHARED, "hypercube") else 1)
    if version < (2,):
        return (f"{size:12d}  {count:12d}  {'float':>6}  {redop_of(spec):>6}", _v1(pair[0]), _v1(pair[1]))
    prefix = f"{size:12d}  {count:12d}  {'float':>{8 if version >= (2, 10) else 6}}"
    if version >= (2, 13):
        prefix += f"  {redop_of(spec):>6}  {root_of(spec):>6}"
    elif spec.collective == "alltoall":
        prefix += f"  {'':>6}"
    else:
        prefix += f"  {'sum':>6}" if redop_of(spec) == "sum" else ""
        prefix += f"  {0:>6}" if spec.collective in ("reduce", "broadcast") else ""
    halves = [_half(spec, cell) for cell in pair]
    if spec.iters_column:
        halves[1] += "      20"
    if spec.timestamps:
        halves[1] += f"{'2026-02-03 04:05:06':>21}"
    return prefix, halves[0], halves[1]


def _v1(cell: Cell) -> str:
    return f"  {cell.time / 1e3:7.3f}  {cell.algbw:5.2f}  {cell.busbw:5.2f}  " + (
        "\tN/A" if cell.wrong is None else f"{0 if not cell.wrong else 1:7.0e}")


def _half(spec: Spec, cell: Cell) -> str:
    if spec.version >= (2, 17, 3):
        text = f"  {fitted(cell.time, 7)}  {fitted(cell.algbw, 6)}  {fitted(cell.busbw, 6)}"
    else:
        text = f"  {old_time(cell.time)}  {cell.algbw:6.2f}  {cell.busbw:6.2f}"
    if cell.wrong is None:
        text += "    N/A"
    elif spec.version < (2, 13):
        text += f"  {3e-07 if not cell.wrong else 0.5:5.0e}"
    else:
        text += f"  {cell.wrong:6g}"
    if spec.per_iteration:
        text += "".join(f"  {fitted(value, 7)}" for value in (cell.time * 0.98, cell.time * 1.04, cell.time * 1.04,
            1.5))
    return text


def foot(spec: Spec, average: float) -> list[str]:
    mark = "# " if spec.version >= (2,) else " "
    failed = 4 if spec.wrong_at else 0
    lines = [f"{mark}Out of bounds values : {failed} {'FAILED' if failed else 'OK'}",
             f"{mark}Avg bus bandwidth    : {average:g} {spec.average_word}", mark.strip()]
    if spec.version >= (2, 16, 7):
        lines += [f"# Collective test concluded: {spec.collective}_perf", "#", ""]
    if spec.simulated:
        lines.append("# SIMULATED: not a measurement of GPUs")
    return lines


def mean(spec: Spec) -> float:
    values = [cell.busbw for index, size in enumerate(spec.sweep()) for cell in cells(spec, size, index)]
    return sum(values) / len(values)


def render(spec: Spec) -> str:
    rows = ["".join(row(spec, size, index)) for index, size in enumerate(spec.sweep())]
    return "\n".join([*head(spec), *columns(spec), *rows, *foot(spec, mean(spec))]) + "\n"


def render_json(spec: Spec, schema: int = 3, misspelt: bool = False) -> str:
    """The -J report; numbers have six decimals and booleans are strings."""
    average, bandwidth = ("average_bus_bandwidith", "bandwith") if misspelt else ("average_bus_bandwidth", "bandwidth")
    document: dict[str, t.Any] = {
        "version": schema, "start_time": "2026-02-03 04:05:06", "args": [f"/opt/{spec.collective}_perf", "-b", "16M"],
        "env": ["HOME=/root", "SECRET_TOKEN=example-secret", "NCCL_IB_HCA=mlx5"], "nccl_version": 22903,
        "config": {
            "nthreads": 1, "ngpus": spec.each if spec.single_process else 1, "minimum_bytes": min(spec.sweep()),
            "maximum_bytes": max(spec.sweep()), "step_factor": spec.factor, "warmup_iters": 5, "iterations": 20,
            "aggregated_iterations": 1, "validation": int(spec.checked), "graph": 0, "blocking_collectives": "false",
            "parallel_init": "false", "devices": [
                {"rank": rank, "group": 0, "pid": 31000 + rank, "hostname": f"gpu{rank // spec.each + 1:02d}",
                 "device": rank % spec.each, "device_hex": "0000:1a:00", "device_info": "NVIDIA Example GPU"}
                for rank in range(0, spec.ranks, spec.each if spec.single_process else 1)],
        },
        "results": [_json_row(spec, size, index) for index, size in enumerate(spec.sweep())],
        "out_of_bounds": {"count": 4 if spec.wrong_at else 0, "okay": "false" if spec.wrong_at else "true"},
        average: {bandwidth: mean(spec), "okay": "unchecked"}, "errors": [""], "end_time": "2026-02-03 04:06:07",
    }
    return json.dumps(document, separators=(",", ":"))


def _json_row(spec: Spec, size: int, index: int) -> dict[str, t.Any]:
    entry: dict[str, t.Any] = {
        "size": size, "count": size // 4 // (spec.ranks if spec.collective in SHARED else 1), "type": "float",
        "redop": redop_of(spec), "root": f"{root_of(spec):6d}"}
    for name, cell in zip(("out_of_place", "in_place"), cells(spec, size, index)):
        entry[name] = {"time": cell.time, "alg_bw": cell.algbw, "bus_bw": cell.busbw,
                       "nwrong": None if cell.wrong is None else float(cell.wrong)}
        if spec.per_iteration:
            entry[f"{name}_per_iter"] = {
                "min_us": cell.time, "max_us": cell.time, "p99_us": cell.time, "cv_pct": 0.5,
                "times_us": [cell.time] * 3,
                "per_process_max_times_us": [[cell.time + rank] * 3 for rank in range(spec.ranks)]}
    return entry


LAYOUTS: dict[str, Spec] = {
    "v1.0-all_reduce": Spec("1.0.0", nodes=2, each=1, bandwidth=11.0),
    "v2.0-all_reduce": Spec("2.0.0"),
    "v2.0-broadcast-root": Spec("2.0.0", "broadcast"),
    "v2.0-reduce-redop-root": Spec("2.0.0", "reduce"),
    "v2.0-all_gather-bare": Spec("2.0.0", "all_gather"),
    "v2.0-alltoall-blank-redop": Spec("2.0.0", "alltoall", nodes=1),
    "v2.10-wide-type": Spec("2.10.0"),
    "v2.13.0": Spec("2.13.0", "reduce_scatter"),
    "v2.13.4-group": Spec("2.13.4"),
    "v2.14.1-pci": Spec("2.14.1", nodes=4),
    "v2.16.7-starting": Spec("2.16.7", "all_gather"),
    "v2.17.3-fitted": Spec("2.17.3", bandwidth=840.0, nodes=1),
    "v2.17.4-versions": Spec("2.17.4", "alltoall", bandwidth=46.0),
    "v2.17.6-timestamps": Spec("2.17.6", timestamps=True),
    "v2.18.2-unalign-sendrecv": Spec("2.18.2", "sendrecv", bandwidth=47.0),
    "v2.19.2-per-iteration": Spec("2.19.2", per_iteration=True),
    "v2.19.2-per-iteration-timestamps": Spec("2.19.2", per_iteration=True, timestamps=True),
    "v2.19.6-split-groups": Spec("2.19.6", groups=8, nodes=4, bandwidth=47.0),
    "v2.20-iters-column": Spec("2.20.0", iters_column=True),
    "v2.19.6-single-process": Spec("2.19.6", nodes=1, single_process=True, bandwidth=470.0),
    "v2.19.6-cycles": Spec("2.19.6", cycles=3),
}
BAD: dict[str, tuple[Spec, str]] = {
    "bad-unchecked": (Spec("2.19.6", checked=False), "UNVERIFIED"),
    "bad-wrong": (Spec("2.19.6", wrong_at=64 * MIB), "WRONG"),
    "bad-wrong-error-column": (Spec("2.0.0", wrong_at=64 * MIB), "WRONG"),
    "bad-one-rank": (Spec("2.19.6", nodes=1, each=1), "INVALID"),
    "bad-hypercube": (dataclasses.replace(LAYOUTS["v2.19.6-single-process"], collective="hypercube", wrong_at=64 * MIB),
    "INVALID"),
    "bad-simulated": (Spec("2.19.6", simulated=True), "INVALID"),
}


def write() -> None:
    for name, spec in [*LAYOUTS.items(), *((name, spec) for name, (spec, _state) in BAD.items())]:
        (FIXTURES / f"{name}.txt").write_text(render(spec), encoding="utf-8")
    for schema in (1, 2, 3):
        spec = Spec("2.19.6", per_iteration=schema > 1, single_process=schema == 3)
        (FIXTURES / f"json-v{schema}.json").write_text(render_json(spec, schema, schema == 1), encoding="utf-8")


if __name__ == "__main__":
    write()
