# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._nccl.errors import (
    ERROR_RULES,
    MAX_ERRORS,
    ErrorReader,
    culprit_of,
    first_error,
)
from plugins.module_utils._nccl.lines import NcclCutter
from plugins.module_utils._nccl.model import STATE_RANK, Result

IB = "a:1:2 [0] NCCL WARN NET/IB"


def read(*lines: str) -> Result:
    result = Result()
    reader, cutter = ErrorReader(result), NcclCutter()
    reader.prepare("\n".join(lines))
    for line in lines:
        result.lines += 1
        cut = cutter.cut(line)
        if cut:
            reader.nccl(*cut, line)
        else:
            reader.plain(line)
    return result


def test_every_rule_is_whole() -> None:
    names = [rule.id for rule in ERROR_RULES]
    assert len(names) == len(set(names))
    for rule in ERROR_RULES:
        assert rule.needle and rule.meaning and rule.action and rule.source, rule.id
        assert rule.state in ("", *STATE_RANK) and rule.state != "PASS", rule.id
        assert rule.role in ("cause", "follower", "wrapper", "note") and (rule.state or rule.role == "note"), rule.id


@pytest.mark.parametrize(("line", "rule"), [
    (f"{IB} : Got completion from peer 192.0.2.1<1> with error 12, opcode 1, vendor err 129", "ib-retry"),
    (f"{IB}: Got completion from peer 192.0.2.1<1> with status=IBV_WC_WR_FLUSH_ERR(5) x", "ib-flushed"),
    (f"{IB} : Got completion from peer 192.0.2.1<1> with error 4, opcode 1, vendor err 81", "ib-protection"),
    (f"{IB} : Got completion from peer 192.0.2.1<1> with status=10 opcode=1", "ib-completion"),
    ("a:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_0:1", "ib-modify-qp-gid"),
    ("a:1:2 [0] NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory", "ib-memlock"),
    ("a:1:2 [0] transport/nvls.cc:1 NCCL WARN Cuda failure 1 'invalid argument'", "nvls-cuda"),
    ("a:1:2 [0] init.cc:1 NCCL WARN Cuda failure 1 'invalid argument'", "nccl-warn"),
    ("a: Test CUDA failure common.cu:1 'no CUDA-capable device is detected'", "cuda-none"),
    ("a: Test CUDA failure common.cu:1 'invalid device ordinal'", "cuda-ordinal"),
    ("a: Test CUDA failure common.cu:1 'something new'", "test-cuda"),
    ("a: Test NCCL failure common.cu:1 'internal error / '", "test-nccl"),
    ("srun: error: a: task 3: Exited with exit code 3", "srun-exit"),
    ("bash: /opt/all_reduce_perf: No such file or directory", "no-program"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.", "oom-kill"),
])
def test_rules(line: str, rule: str) -> None:
    assert [error.id for error in read(line).errors] == [rule]


def test_ordinary_lines_mean_nothing() -> None:
    assert not read("SLURM_JOB_ID=5", "a:1:2 [0] NCCL INFO Connected all rings", "gpu01 slots=8").errors


def test_places() -> None:
    error = read("[2026-02-03 04:05:06] a:1:2 [5] x.cc:1 NCCL WARN NET/IB: Got completion from peer 192.0.2.7<1> with "
                 "status=12 remoteGids::ffff:198.51.100.1 hca mlx5_5").errors[0]
    assert (error.host, error.device, error.hca, error.peer) == ("a", 5, "mlx5_5", "192.0.2.7")
    assert error.time == "2026-02-03 04:05:06"
    assert read("srun: error: b: task 3: Killed").errors[0].rank == 3
    assert read("mpirun noticed that process rank 9 with PID 1 on node c exited on signal 11").errors[0].host == "c"


def test_the_first_cause_wins() -> None:
    errors = read("a: Test NCCL failure x.cu:1 'remote process exited or there was a network error / '",
                  " .. a pid 1: Test failure x.cu:2",
                  "b: Test NCCL failure x.cu:1 'unhandled system error / '",
                  "c:1:2 [0] NCCL WARN NET/IB: Got completion from peer 192.0.2.1<1> with status=12 hca mlx5_1").errors
    first = first_error(errors)
    assert first is not None and culprit_of(first, errors).host == "c"
    assert first_error([]) is None


def test_repeats_are_counted_and_kinds_bounded() -> None:
    result = read(*(["a: Test timeout (9s) x.cu:1"] * 50))
    assert (len(result.errors), result.errors[0].count, result.error_count) == (1, 50, 50)
    assert len(read(*(f"h{number}: Test timeout (9s) x.cu:1" for number in range(1000))).errors) == MAX_ERRORS
