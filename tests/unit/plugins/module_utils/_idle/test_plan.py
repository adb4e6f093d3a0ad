# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle.model import (
    SERVICES,
    Decision,
    Mount,
    Policy,
    Port,
    Process,
    QueuePair,
    Usage,
)

DEVICES = {"a": ("mlx5_0",), "b": ("mlx5_1", "mlx5_9")}
A, B = Port("a", "rail0", 0), Port("b", "rail1", 1)


def usage(*processes: Process, **fields: object) -> Usage:
    return Usage(processes, **{"queue_pairs": (), "devices": DEVICES, **fields})  # type: ignore[arg-type]


def test_an_idle_node() -> None:
    assert plan.of_port(usage(), A) == ()
    assert usage().known and not usage(queue_pairs=None).known and not usage(unseen=1).known


def test_a_process_holds_its_device_only() -> None:
    found = usage(Process(7, "train", devices=("mlx5_0",)))
    assert (plan.of_port(found, A), plan.of_port(found, B)) == (("pid 7 train holds mlx5_0",), ())


def test_a_step_of_slurm_has_the_whole_node() -> None:
    step = Process(1234, "all_reduce_perf", "Slurm job 4242 step 0", True, ("mlx5_0",))
    assert plan.of_port(usage(step), A) == ("Slurm job 4242 step 0 (pid 1234 all_reduce_perf) holds mlx5_0",)
    assert plan.of_port(usage(step), B) == ("Slurm job 4242 step 0 (pid 1234 all_reduce_perf) runs on this node",)


def test_a_pod_counts_by_what_it_holds() -> None:
    pod = "pod 6a4c1b1e-0d5f-4a55-9a0e-0123456789ab container 0123456789ab"
    assert plan.of_port(usage(Process(5, "python3", pod, has_gpu=True)), B) == (f"{pod} (pid 5 python3) holds a GPU",)
    virtual = usage(Process(5, "python3", pod, devices=("mlx5_9",)))
    assert (plan.of_port(virtual, A), plan.of_port(virtual, B)) == ((), (f"{pod} (pid 5 python3) holds mlx5_9",))


def test_connections() -> None:
    found = usage(Process(7, "train", devices=("mlx5_0", "mlx5_1")), queue_pairs=(
        QueuePair("mlx5_0", "train", 7), QueuePair("mlx5_1", "[nvme_rdma]"), QueuePair("mlx5_1", "other", 8)))
    assert plan.of_port(found, A) == ("pid 7 train has connections on mlx5_0",)
    assert plan.of_port(found, B) == ("pid 7 train holds mlx5_1", "the kernel's nvme_rdma has connections on mlx5_1",
                                      "pid 8 other has connections on mlx5_1")


def test_services_are_no_job() -> None:
    assert all(len(name) <= 15 for name in SERVICES)
    assert plan.of_port(usage(Process(9, "nv-hostengine", has_gpu=True), Process(10, "ibacm", devices=("mlx5_0",))),
                        A) == ()
    job = Process(9, "gpud", "Slurm job 1 step 0", True)
    assert plan.of_port(usage(job), A) == ("Slurm job 1 step 0 (pid 9 gpud) runs on this node",)


def test_mounts_and_the_device_of_a_bond() -> None:
    found = usage(mounts=(Mount("nfs4 x at /data", "rail1"), Mount("beegfs y at /bee")))
    assert plan.of_port(found, A) == ("mount beegfs y at /bee uses RDMA",)
    assert plan.of_port(found, B) == ("mount nfs4 x at /data uses RDMA", "mount beegfs y at /bee uses RDMA")
    bond = usage(Process(7, "train", devices=("mlx5_bond_0",)))
    assert plan.of_port(bond, A) == ()
    assert plan.of_port(bond, Port("a", "rail0", devices=("mlx5_bond_0",))) == ("pid 7 train holds mlx5_bond_0",)


@pytest.mark.parametrize(("policy", "busy", "known"), [
    ("if_idle", {"a": ("pid 7 train holds mlx5_0",)}, True), ("force", {}, True),
    ("never", {"a": ("disruption_policy is never",), "b": ("disruption_policy is never",)}, None)])
def test_the_policy(policy: Policy, busy: dict[str, tuple[str, ...]], known: bool | None) -> None:
    found = usage(Process(7, "train", devices=("mlx5_0",)))
    assert plan.decide(policy, [A, B], lambda: found) == Decision(busy, known)


def test_nobody_is_asked_without_need() -> None:
    def read() -> Usage:
        raise AssertionError

    assert plan.decide("if_idle", [], read) == Decision()
    assert plan.decide("never", [A], read).known is None


def test_an_entry_of_the_result() -> None:
    assert plan.entry(A, [("x", "1")], ("h",)) == {"rail": 0, "pci": "a", "netdev": "rail0", "steps": [["x", "1"]],
                                                   "holders": ["h"]}
    assert "rail" not in plan.entry(Port("a"), [], ())
