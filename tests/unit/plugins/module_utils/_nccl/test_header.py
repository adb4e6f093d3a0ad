# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._nccl.header import (
    HeaderReader,
    collective_of,
    read_command,
)
from plugins.module_utils._nccl.model import Request, Result
from plugins.module_utils._nccl.table import RowBuilder


def reader() -> tuple[Result, HeaderReader]:
    result = Result()
    return result, HeaderReader(result, RowBuilder())


@pytest.mark.parametrize(("line", "rank", "group", "pid", "host", "pci", "name"), [
    ("#  Rank 10 Group  2 Pid  31000 on      gpu01 device  7 [0000:1b:00] NVIDIA B200", 10, 2, 31000, "gpu01",
     "0000:1b:00", "NVIDIA B200"),
    ("#   Rank  0 Pid  41000 on localhost device  0 [0x00] A100-SXM4-40GB", 0, 0, 41000, "localhost", "0x00",
     "A100-SXM4-40GB"),
    ("#   Rank  1 on     gpu02 device  0 [0x00] Tesla V100", 1, 0, None, "gpu02", "0x00", "Tesla V100"),
    ("# Rank  3 Group  0 Pid 5 on gpu01 device  3 [] ", 3, 0, 5, "gpu01", "", ""),
])
def test_devices(line: str, rank: int, group: int, pid: int | None, host: str, pci: str, name: str) -> None:
    result, header = reader()
    header.comment(line)
    device = result.ran.devices[0]
    assert (device.rank, device.group, device.pid, device.host, device.pci, device.name) == (rank, group, pid, host,
        pci, name)
    assert header.ranks == {rank} and list(header.hosts) == [host]


def test_footers() -> None:
    result, header = reader()
    for line in ("# Out of bounds values : 3 FAILED", "# Avg bus bandwidth    : 12.5 FAILED",
        "# Avg bus bandwidth    : nonsense",
                 "# GPU memory usage     : Init 1.2 GB | Total 3 GB", "# Out of bounds values : x OK"):
        header.comment(line)
    assert (result.out_of_bounds, result.out_of_bounds_failed) == ([3], True)
    assert (result.average_printed, result.average_words) == ([12.5], ["FAILED"])


def test_a_count_that_says_ok_still_counts() -> None:
    result, header = reader()
    header.comment("# Out of bounds values : 3 OK")
    assert result.out_of_bounds_failed


def test_header_lines() -> None:
    result, header = reader()
    for line in ("# nccl-tests version 2.20.0 nccl-headers=22903 nccl-library=22903",
        "# Collective test starting: all_gather_perf_mpi",
                 "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 8(bytes) warmup iters: 1 iters: 20 agg iters: 1 "
                 "validation: 1 "
                 "graph: 3 unalign: 0 side_work: 0 direction: H2D",
                 "# Reducing maxBytes to 32 due to memory limitation"):
        header.comment(line)
    request = result.request
    assert (result.tests_version, result.ran.collective) == ("2.20.0", "all_gather")
    assert (request.gpus_per_thread, request.step_kind, request.warmup_iters, request.iters, request.graph) == (2,
        "bytes", 1, 20, 3)
    assert request.reduced_max_bytes == 32


@pytest.mark.parametrize(("text", "ranks", "low", "high"), [
    ("srun --mpi=pmix -N 2 --ntasks=16 /opt/all_reduce_perf -b 1G -e 16G -f 2", 16, 1 << 30, 16 << 30),
    ("mpirun -np 8 -x A=b ./alltoall_perf -b8 -e 128M", 8, 8, 128 << 20), ("./all_reduce_perf -n 5 -g 8", None, None,
     None)])
def test_commands(text: str, ranks: int | None, low: int | None, high: int | None) -> None:
    request = Request()
    read_command(text, request)
    assert (request.ranks, request.min_bytes, request.max_bytes) == (ranks, low, high)


def test_names() -> None:
    assert collective_of("/x/reduce_scatter_perf_mpi") == "reduce_scatter"
    assert collective_of("alltoall_perf") == "alltoall" and collective_of("odd") == "odd"
