# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What a log lacks or contradicts, once all of it is read: the findings that a verdict rests on.

Rules: facts nccl-gate 1.7 and 1.8 (6 to 8). A finding's state is the best that is still possible with it.
"""
from __future__ import annotations

import typing as t

from .formulas import factor_of, infer_collective, infer_ranks, listed_ranks_fit
from .model import Finding, Result, Verification

if t.TYPE_CHECKING:
    from .header import HeaderReader
    from .json_report import JsonReport
    from .rows import RowSummary
    from .table import Layout, RowBuilder

_MAX_NAMES = 64
# The tool never checks the in-place result of these (1.3).
OUT_OF_PLACE_ONLY = frozenset({"alltoall", "alltoallv", "sendrecv"})


def finish(result: Result, header: HeaderReader, builder: RowBuilder, rows: RowSummary,
           reports: list[JsonReport]) -> None:
    """Fill in what only the whole log can tell."""
    _devices(result, header)
    rows.finish()
    result.broken_rows = builder.broken + sum(report.broken for report in reports)
    result.runs = max(header.column_headers + header.broken_headers, header.option_lines, header.device_headers,
                      int(bool(result.row_count)))
    result.ended = min(len(result.out_of_bounds), len(result.average_printed))
    result.checked_cells, result.unchecked_cells = sum(rows.checked), sum(rows.unchecked)
    _collective(result, rows, builder.layout)
    result.verification = _verification(result, rows)
    if reports and not all(report.ended for report in reports):
        result.findings.append(Finding("json-cut", "INCOMPLETE", "the JSON report does not reach its end"))
    for check in (_runs, _table, _footers, _ranks, _figures, _sizes, _shape, _data, _network, _notes):
        for finding in check(result, header, rows):
            result.findings.append(finding)


def _devices(result: Result, header: HeaderReader) -> None:
    ran = result.ran
    ran.ranks_listed = len(header.ranks)
    ran.rank_max = max(header.ranks, default=-1)
    ran.groups = len(header.groups)
    ran.hosts = list(header.hosts)[:_MAX_NAMES * _MAX_NAMES]
    if header.hosts:
        ran.nodes = max(len(header.hosts), ran.nodes or 0)
    ran.gpu_names = sorted({device.name for device in ran.devices})[:_MAX_NAMES]


def _collective(result: Result, rows: RowSummary, layout: Layout | None) -> None:
    ran, request = result.ran, result.request
    if not ran.collective and request.collective:
        ran.collective, ran.collective_source = request.collective, "command"
    each = _ranks_of_group(result)
    if not ran.collective and result.row_count:
        ran.collective = infer_collective(rows, ran.redops, each)
        if ran.collective == "all_gather" and layout is not None and layout.redop and ran.redops == [""]:
            # 2.0 prints the redop column for alltoall, but leaves it blank.
            ran.collective = "alltoall"
        ran.collective_source = "inferred" if ran.collective else ""
    inferred = infer_ranks(rows, ran.collective)
    ran.ranks_inferred = inferred * max(ran.groups, 1) if inferred else None
    # A list with holes says only that there are more.
    listed = ran.ranks_listed if ran.ranks_listed == ran.rank_max + 1 else 0
    for number, source in ((listed, "listed"), (ran.ranks_nccl, "nccl"), (ran.ranks_inferred, "bandwidth")):
        if number:
            ran.ranks, ran.ranks_source = number, source
            break


def _ranks_of_group(result: Result) -> int:
    """Ranks of one communicator: NCCL_TESTS_SPLIT makes several of equal size."""
    groups = max(result.ran.groups, 1)
    return result.ran.ranks_listed // groups


def _verification(result: Result, rows: RowSummary) -> Verification:
    if not result.row_count:
        return "none"
    if not result.checked_cells:
        return "unverified"
    if not result.unchecked_cells:
        return "verified"
    # All out-of-place results checked, no in-place one: the form of alltoall and sendrecv, and of no other.
    half = rows.checked[0] and not rows.unchecked[0] and not rows.checked[1]
    named = result.ran.collective_source in ("named", "command")
    return "verified" if half and (not named or result.ran.collective in OUT_OF_PLACE_ONLY) else "partly"


Findings = t.Iterator[Finding]


def _runs(result: Result, header: HeaderReader, _rows: RowSummary) -> Findings:
    if result.runs <= 1:
        return
    if header.rank_zeros > 1 and header.ranks == {0}:
        yield Finding("singletons", "INVALID", f"{result.runs} separate runs of one rank each instead of one run: "
                      "the build has no MPI, or the launcher's MPI plugin is wrong")
    else:
        yield Finding("several-runs", "INVALID", f"{result.runs} runs in one log: judge them one by one")


def _table(result: Result, header: HeaderReader, _rows: RowSummary) -> Findings:
    if not header.column_headers:
        yield Finding("no-header", "INCOMPLETE", "no whole column header: figures cannot be read")
    if not result.row_count:
        yield Finding("no-rows", "INCOMPLETE", "no whole row of results")
    if result.broken_rows:
        yield Finding("broken-rows", "INCOMPLETE", f"{result.broken_rows} rows are cut or mixed up")


def _footers(result: Result, header: HeaderReader, rows: RowSummary) -> Findings:
    if not result.out_of_bounds:
        yield Finding("no-bounds", "INCOMPLETE", "the footer \"Out of bounds values\" is missing")
    if not result.average_printed:
        yield Finding("no-average", "INCOMPLETE", "the footer \"Avg bus bandwidth\" is missing")
    elif result.average_computed is not None and result.runs <= 1:
        printed, computed = result.average_printed[-1], result.average_computed
        # 1.8 rule 7
        if not abs(printed - computed) <= 0.01 + 0.001 * abs(computed):
            yield Finding("average", "INCOMPLETE", f"the footer's average {printed:g} is not the rows' mean "
                          f"{computed:.3f}: rows are missing or changed")
    if "FAILED" in result.average_words:
        yield Finding("min-bw", "", "NCCL_TESTS_MIN_BW failed; it compares the average of all sizes")


def _exact_mean(result: Result) -> bool:
    """As near as rounding allows: rows keep two decimals (one from 1000 on), the footer six digits (%g)."""
    if result.average_computed is None or not result.average_printed:
        return False
    rounding = 0.006 if (result.peak_busbw_gbps or 0.0) < 1000 else 0.06
    return abs(result.average_printed[-1] - result.average_computed) <= rounding + 1e-5 * result.average_computed


def _ranks(result: Result, header: HeaderReader, rows: RowSummary) -> Findings:
    ran, request = result.ran, result.request
    if ran.ranks == 1 or (rows.factor() is not None and ran.ranks is None and result.peak_busbw_gbps == 0):
        yield Finding("one-rank", "INVALID", "one rank: not a bandwidth test (busbw is 0 by its formula)")
    listed = ran.ranks_listed
    if listed and listed != ran.rank_max + 1:
        yield Finding("ranks-lost", "INCOMPLETE", f"{listed} Rank lines, but the highest is rank {ran.rank_max}")
    elif listed:
        yield from _listed(result, rows, listed)
    each = (request.threads or 1) * (request.gpus_per_thread or 1)
    asked = request.ranks * each if request.ranks else None
    known = max(ran.rank_max + 1, ran.ranks or 0)
    if asked and known and known != asked:
        # Slurm's variable counts the whole allocation, and a step may be smaller; a command line is exact.
        yield Finding("ranks-asked", "INVALID" if request.command else "", f"{asked} ranks were asked for, {known} ran")
    if listed and result.row_count and ran.ranks is None:
        yield Finding("ranks", "INCOMPLETE", "the number of ranks is unknown")


def _listed(result: Result, rows: RowSummary, listed: int) -> Findings:
    ran, request = result.ran, result.request
    each = (request.threads or 1) * (request.gpus_per_thread or 1)
    if listed % each:
        yield Finding("ranks-uneven", "INCOMPLETE", f"{listed} Rank lines with {each} GPUs per process")
    if ran.groups > 1 and listed % ran.groups:
        yield Finding("groups-uneven", "INCOMPLETE", f"{listed} Rank lines in {ran.groups} groups")
    elif listed > 1 and not listed_ranks_fit(rows, ran.collective, _ranks_of_group(result)):
        low, high = rows.factor() or (0.0, 0.0)
        wanted = factor_of(ran.collective, _ranks_of_group(result))
        yield Finding("ranks-factor", "INVALID", f"busbw / algbw is {(low + high) / 2:.4f}, but {listed} ranks in "
                      f"{max(ran.groups, 1)} group(s) give {wanted:.4f}")
    if ran.ranks_nccl and ran.ranks_nccl != _ranks_of_group(result) and ran.groups <= 1:
        yield Finding("ranks-nccl", "INVALID", f"{listed} Rank lines, NCCL says {ran.ranks_nccl} ranks")


def _figures(result: Result, _header: HeaderReader, rows: RowSummary) -> Findings:
    if rows.infinite:
        yield Finding("not-finite", "INVALID", "a time or bandwidth is no finite number")
    if result.ran.collective != "alltoallv":
        if rows.inconsistent:
            yield Finding("figures", "INVALID", rows.inconsistent)
        if rows.contradiction():
            yield Finding("factor", "INVALID", "busbw / algbw differs between the rows")
    if result.row_count and result.peak_busbw_gbps == 0 and result.ran.ranks != 1:
        yield Finding("zero", "INVALID", "no row shows any bandwidth")
    if result.ran.collective == "hypercube" and result.ran.nodes in (None, 1):
        yield Finding("hypercube", "INVALID", "hypercube in one process reports false wrong values: "
                      "no test to judge by")


def _sizes(result: Result, _header: HeaderReader, rows: RowSummary) -> Findings:
    request = result.request
    if rows.gaps:
        # A list of sizes with uneven steps is whole if its mean is exactly the footer's.
        state = "" if _exact_mean(result) else "INCOMPLETE"
        yield Finding("size-gap", state, f"the sizes leave their step {rows.gaps} times: rows may be missing")
    if rows.short_sweeps and request.max_bytes:
        yield Finding("sizes-short", "INCOMPLETE", f"the sizes end before the {request.max_bytes} bytes asked for")
    if rows.late_sweeps and request.min_bytes:
        yield Finding("sizes-late", "INCOMPLETE", f"the sizes begin above the {request.min_bytes} bytes asked for")
    if request.reduced_max_bytes is not None:
        yield Finding("sizes-reduced", "INVALID", f"GPU memory was short: sizes end at {request.reduced_max_bytes} "
                      f"instead of {request.max_bytes} bytes; ask for what fits")


def _shape(result: Result, _header: HeaderReader, rows: RowSummary) -> Findings:
    if result.runs <= 1:
        for text in rows.falls():
            yield Finding("fall", "SLOW", text)
            return


def _data(result: Result, _header: HeaderReader, _rows: RowSummary) -> Findings:
    if result.wrong_cells or result.out_of_bounds_failed:
        count = max(result.out_of_bounds, default=0)
        yield Finding("wrong", "WRONG", f"wrong data: {result.wrong_cells} results in the table, "
                      f"{count} failed checks in the footer")
    if result.verification == "unverified":
        yield Finding("unverified", "UNVERIFIED", "no result was checked (N/A)")
    elif result.verification == "partly":
        yield Finding("partly", "UNVERIFIED", f"{result.unchecked_cells} of "
                      f"{result.unchecked_cells + result.checked_cells} results were not checked")


def _network(result: Result, _header: HeaderReader, _rows: RowSummary) -> Findings:
    transport = result.transport
    if "Socket" in transport.networks and (result.ran.nodes or 2) > 1:
        yield Finding("socket", "SLOW", "NCCL fell back to sockets"
                      + (": it found no RDMA device" if transport.no_ib_device else ""))
    if transport.host_memory_channels and "Socket" not in transport.networks:
        channels = transport.host_memory_channels + transport.gdr_channels
        yield Finding("no-gdr", "", f"{transport.host_memory_channels} of {channels} network channels go through "
                      "host memory")


def _notes(result: Result, _header: HeaderReader, _rows: RowSummary) -> Findings:
    if result.ran.groups > 1:
        yield Finding("groups", "", f"{result.ran.groups} communicators in one table: figures are averages over "
                      "them, a slow one is diluted and not named")
    if result.rows_dropped:
        yield Finding("rows-dropped", "", f"{result.rows_dropped} rows are only in the sums")
