# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io

import pytest

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.parse import (
    LogParser,
    parse_file,
    parse_lines,
    parse_text,
)

from . import rendering
from .rendering import FIXTURES, LAYOUTS, Spec

GOOD = rendering.render(Spec("2.19.6"))


def test_fixtures_are_what_rendering_writes() -> None:
    for name, spec in LAYOUTS.items():
        assert (FIXTURES / f"{name}.txt").read_text(encoding="utf-8") == rendering.render(spec), name


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    spec = LAYOUTS[name]
    result = parse_text((FIXTURES / f"{name}.txt").read_bytes())
    pairs = [rendering.cells(spec, size, index) for index, size in enumerate(spec.sweep())]
    assert (result.row_count, result.broken_rows, result.runs) == (len(spec.sweep()), 0, 1)
    assert (result.ran.ranks, result.ran.nodes, result.ran.groups) == (spec.ranks, spec.nodes, spec.groups)
    assert result.ran.collective == spec.collective
    assert [row.size_bytes for row in result.rows] == list(spec.sweep())
    assert result.peak_busbw_gbps == pytest.approx(max(cell.busbw for pair in pairs for cell in pair), abs=0.06)
    for row, pair in zip(result.rows, pairs):
        for cell, wanted in zip((row.out_of_place, row.in_place), pair):
            assert cell is not None
            assert cell.time_us == pytest.approx(wanted.time, rel=0.01)
            assert cell.busbw_gbps == pytest.approx(wanted.busbw, abs=0.06)
            assert cell.wrong == wanted.wrong
    assert result.verification == "verified"
    assert judge(result).state == "PASS", judge(result).reason


def test_what_was_asked_and_what_ran() -> None:
    result = parse_text(GOOD)
    assert (result.request.min_bytes, result.request.max_bytes, result.request.step) == (1 << 24, 1 << 32, 4)
    assert (result.request.warmup_iters, result.request.iters, result.request.validation) == (5, 20, 1)
    assert result.tests_version == "2.19.6"
    assert result.ran.hosts == ["gpu01", "gpu02"]
    assert result.ran.gpu_names == ["NVIDIA Example GPU"]
    assert (result.ran.min_bytes, result.ran.max_bytes) == (1 << 24, 1 << 32)
    assert (result.rows[0].redop, result.rows[0].root) == ("sum", -1)
    assert result.average_printed[0] == pytest.approx(result.average_computed, abs=0.01)


def test_per_iteration_columns() -> None:
    result = parse_text(rendering.render(LAYOUTS["v2.19.2-per-iteration"]))
    cell = result.rows[0].in_place
    assert cell is not None and cell.extra["i_cv%"] == 1.5 and cell.extra["i_max"] > cell.extra["i_min"]


PREFIXES = {
    "srun": lambda number, line: f"0: {line}",
    "srun-wide": lambda number, line: f"  0: {line}",
    "tag-output-4": lambda number, line: f"[1,0]<stdout>:{line}",
    "tag-output-5": lambda number, line: f"[1,0]<stdout>: {line}",
    "tag-detailed": lambda number, line: f"[1,0][gpu01:4176]<stdout>: {line}",
    "tag-fullname": lambda number, line: f"[prterun-gpu01-4176@1,0]<stdout>: {line}",
    "tag-timestamp": lambda number, line: f"[Mon Nov  3 01:25:07 2025][1,0]<stdout>: {line}",
    "rank": lambda number, line: f"[0] {line}",
    "worker": lambda number, line: f"worker-0: {line}",
    "kubectl": lambda number, line: f"2026-02-03T04:05:06.{number:09d}Z {line}",
    "kubectl-srun": lambda number, line: f"2026-02-03T04:05:06+01:00 [1,0]<stdout>: {line}",
    "kubectl-pod": lambda number, line: f"[pod/gate-launcher-x/nccl] {line}",
    "cri": lambda number, line: f"2026-02-03T04:05:06.123456789Z stdout F {line}",
    "crlf": lambda number, line: f"{line}\r",
    "ansi": lambda number, line: f"\x1b[0;32m{line}\x1b[0m",
    "pdsh": lambda number, line: f"gpu01: {line}" if line.startswith("#") or number > 20 else line,
}


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("layout", ["v2.0-all_reduce", "v2.0-alltoall-blank-redop", "v2.19.2-per-iteration",
    "v2.17.6-timestamps"])
def test_prefixes(name: str, layout: str) -> None:
    text = "\n".join(PREFIXES[name](number, line) for number,
        line in enumerate(rendering.render(LAYOUTS[layout]).split("\n")))
    plain, prefixed = parse_text(rendering.render(LAYOUTS[layout])), parse_text(text)
    assert prefixed.rows == plain.rows
    assert judge(prefixed).state == "PASS", judge(prefixed).reason


def split_rows(glue: bool) -> str:
    """Rows in three parts with lines of NCCL and of other ranks between or glued to them."""
    spec, lines = Spec("2.16.7"), []
    for index, size in enumerate(spec.sweep()):
        first, second, third = rendering.row(spec, size, index)
        info = f"gpu01:31000:31999 [0] NCCL INFO AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel=x"
        warning = "[2026-02-03 04:05:06] gpu01:31000:31999 [0] init.cc:12 NCCL WARN slow"
        lines += [first + info] if glue else [first, f"[8] {info}"]
        lines += [second + warning] if glue else [f"[0] {second}", "[3] " + info]
        lines.append(third)
    foot = rendering.foot(spec, rendering.mean(spec))
    return "\n".join([*rendering.head(spec), *rendering.columns(spec), *lines, *foot]) + "\n"


@pytest.mark.parametrize("glue", [True, False])
def test_split_and_glued_rows(glue: bool) -> None:
    result = parse_text(split_rows(glue))
    assert result.rows == parse_text(rendering.render(Spec("2.16.7"))).rows
    assert result.transport.algorithms["RING"] >= 5
    assert judge(result).state == "PASS"


def test_a_row_with_text_in_it_is_lost() -> None:
    spec = Spec("2.16.7")
    first, second, third = rendering.row(spec, spec.max_bytes, 0)
    lines = rendering.render(spec).split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(first))
    lines[at:at + 1] = [first, "some other program wrote this", second + third]
    result = parse_text("\n".join(lines))
    assert result.broken_rows == 2
    assert judge(result).state == "INCOMPLETE"


def test_pieces_of_any_size_give_the_same() -> None:
    wanted = parse_text(GOOD).to_dict()
    for size in (1, 7, 100):
        parser = LogParser()
        data = GOOD.encode()
        for at in range(0, len(data), size):
            parser.feed(data[at:at + size])
        assert parser.close().to_dict() == wanted
    assert parse_file(io.BytesIO(GOOD.encode())).to_dict() == wanted
    assert parse_lines(GOOD.splitlines()).rows == parse_text(GOOD).rows
    assert parse_lines(GOOD.encode().splitlines(keepends=True)).rows == parse_text(GOOD).rows


def test_json_within_text() -> None:
    report = rendering.render_json(Spec("2.19.6"))
    result = parse_text("Writing to a pod log\n" + report + "\nthe end\n")
    assert (result.source, result.row_count, result.runs) == ("json", 5, 1)
    assert judge(result).state == "PASS"
    quoted = parse_text('a line that quotes {"version":3 is none\n' + report)
    assert judge(quoted).state == "PASS"
    both = parse_text(GOOD + report + "\n")
    assert both.runs == 2 and judge(both).state == "INVALID"


def test_singletons_and_several_runs() -> None:
    one = rendering.render(Spec("2.19.6", nodes=1, each=1))
    result = parse_text(one * 4)
    assert [finding.id for finding in result.findings][:1] == ["singletons"]
    assert judge(result).state == "INVALID" and "no MPI" in judge(result).reason
    assert judge(parse_text(GOOD * 2)).state == "INVALID"


def test_long_lines_and_rows_beyond_the_bound() -> None:
    result = parse_text(b"x" * 300_000 + b"\n" + GOOD.encode())
    assert judge(result).state == "PASS"
    spec = Spec("2.19.6", cycles=1000)
    result = parse_text(rendering.render(spec))
    assert (result.row_count, len(result.rows), result.rows_dropped) == (5000, 2048, 2952)
    assert (result.cycles, judge(result).state) == (1000, "PASS")


def test_commands_in_the_log() -> None:
    command = "+ mpirun -np 16 --map-by ppr:8:node /opt/nccl-tests/all_reduce_perf_mpi -b 16M -e 4G -f 4\n"
    result = parse_text(command + GOOD)
    assert (result.request.ranks, result.request.collective) == (16, "all_reduce")
    assert judge(result).state == "PASS"
    result = parse_text(command.replace("-np 16", "-np 32") + GOOD)
    assert judge(result).state == "INVALID" and "32" in judge(result).reason
    result = parse_text("SLURM_NTASKS=32\n" + GOOD)
    assert judge(result).state == "PASS" and "32" in judge(result).details["notes"][0]


def test_simulated() -> None:
    assert parse_text(rendering.render(Spec("2.19.6", simulated=True))).simulated
    assert not parse_text(GOOD).simulated


NCCL_LINES = "".join(f"gb4:461:461 [{device}] NCCL INFO comm 0x5586c93ba938 rank {12 + device} nRanks 16\n"
                     for device in range(3))


def cut_header(at: int, lost: bool = False) -> str:
    """GOOD with other ranks' lines after ``at`` characters of the column header, as mpirun passes chunks on."""
    header = next(line for line in GOOD.split("\n") if "busbw" in line)
    rest = "" if lost else header[at:] + "\n"
    return GOOD.replace(header + "\n", header[:at] + NCCL_LINES + rest)


@pytest.mark.parametrize("at", range(13, 118))
def test_a_column_header_that_other_ranks_lines_cut_is_put_together(at: int) -> None:
    whole, cut = parse_text(GOOD), parse_text(cut_header(at))
    assert (cut.row_count, cut.peak_busbw_gbps, cut.layout) == (whole.row_count, whole.peak_busbw_gbps, whole.layout)
    assert judge(cut).state == judge(whole).state == "PASS"


@pytest.mark.parametrize("at", [20, 75, 117])
def test_a_column_header_whose_rest_never_comes_is_none(at: int) -> None:
    result = parse_text(cut_header(at, lost=True))
    assert (result.row_count, result.runs) == (0, 1)
    assert judge(result).state == "INCOMPLETE"
    twice = parse_text(cut_header(at, lost=True) + GOOD)
    assert twice.runs == 2
