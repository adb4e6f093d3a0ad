# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle import io, plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle.model import Mount, Port, QueuePair, Usage

from tests.unit.plugins.fake import FakeNode, failed, ok
from tests.unit.plugins.holders import process, slurm_step, verbs

PCIS = ("0000:03:00.0", "0002:03:00.0")
UVERBS0, UVERBS1 = "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"


@pytest.fixture
def busy(node: FakeNode) -> FakeNode:
    node.override[("rdma",)] = lambda call: ok("[]")
    verbs(node.root, ["mlx5_0", "rocep3s0f0"])
    process(node.root, 5, "bash")
    return node


def gather(node: FakeNode) -> Usage:
    return io.gather(node.machine(), PCIS)


def test_an_idle_node(busy: FakeNode) -> None:
    found = gather(busy)
    assert (found.processes, found.queue_pairs, found.mounts, found.unseen, found.known) == ((), (), (), 0, True)
    assert found.devices == {PCIS[0]: ("mlx5_0",), PCIS[1]: ("rocep3s0f0",)}


def test_device_files_of_a_job_a_pod_and_nobody(busy: FakeNode) -> None:
    slurm_step(busy.root, 1234, "all_reduce_perf", UVERBS0, UVERBS0)
    uid, container = "6a4c1b1e_0d5f_4a55_9a0e_0123456789ab", "ab" * 32
    process(busy.root, 1300, "python3", UVERBS1, "/dev/nvidia0",
            cgroup=f"/kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{container}.scope")
    process(busy.root, 1400, "ib_write_bw", UVERBS1, environ=b"SLURM_JOB_ID=8\0SLURM_STEP_ID=1\0")
    found = gather(busy)
    assert [(one.pid, one.job, one.devices, one.has_gpu) for one in found.processes] == [
        (1234, "Slurm job 4242 step 0", ("mlx5_0",), False),
        (1300, f"pod {uid.replace('_', '-')} container {container[:12]}", ("rocep3s0f0",), True),
        (1400, "Slurm job 8 step 1", ("rocep3s0f0",), False)]
    assert plan.of_port(found, Port(PCIS[0], "rail0"))[0] == \
        "Slurm job 4242 step 0 (pid 1234 all_reduce_perf) holds mlx5_0"


def test_a_step_is_named_by_its_program_once(busy: FakeNode) -> None:
    for pid, comm in ((50, "slurmstepd"), (51, "python3"), (52, "python3")):
        slurm_step(busy.root, pid, comm)
    slurm_step(busy.root, 60, "slurmstepd", job=4243)
    process(busy.root, 70, "slurmstepd", cmdline=b"slurmstepd: [4244.extern]\0")
    process(busy.root, 71, "slurmstepd", cmdline=b"/usr/sbin/slurmstepd\0infinity\0",
            cgroup="/system.slice/slurmstepd.scope/system")
    assert [(one.pid, one.job) for one in gather(busy).processes] == [
        (51, "Slurm job 4242 step 0"), (60, "Slurm job 4243 step 0"), (70, "Slurm job 4244 step extern")]


def test_connections(busy: FakeNode) -> None:
    busy.override[("rdma",)] = lambda call: ok(json.dumps(
        [{"ifname": "mlx5_0", "type": "RC", "pid": 77, "comm": "train"}, {"ifname": "mlx5_0", "type": "GSI"}]))
    assert gather(busy).queue_pairs == (QueuePair("mlx5_0", "train", 77),)


@pytest.mark.parametrize("answer", [
    Result((), "missing"), Result((), "timeout", None, "", "no answer"), ok("garbage"), failed(1, "broken"),
    Result((), "ok", 0, "", "Failed to open NETLINK_RDMA socket")])
def test_without_rdma_the_files_still_tell(busy: FakeNode, answer: Result) -> None:
    busy.override[("rdma",)] = lambda call: answer
    process(busy.root, 9, "train", UVERBS0)
    found = gather(busy)
    assert (found.queue_pairs, found.known) == (None, False)
    assert plan.of_port(found, Port(PCIS[0])) == ("pid 9 train holds mlx5_0",)


def test_a_process_that_cannot_be_looked_at_is_not_taken_for_idle(
    busy: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "_open_files", lambda folder: None)
    assert (gather(busy).unseen, gather(busy).known) == (1, False)
    slurm_step(busy.root, 50, "train")
    assert [one.pid for one in gather(busy).processes] == [50]


def test_without_procfs_nothing_is_known(node: FakeNode) -> None:
    node.override[("rdma",)] = lambda call: ok("[]")
    assert gather(node).known is False


def test_a_process_that_went_away(busy: FakeNode) -> None:
    (busy.root / "proc/6").mkdir()
    assert gather(busy).known


def test_virtual_functions_belong_to_their_port(busy: FakeNode) -> None:
    (busy.root / "sys/bus/pci/devices" / PCIS[0] / "virtfn0/infiniband/mlx5_7").mkdir(parents=True)
    verbs(busy.root, ["mlx5_0", "rocep3s0f0", "mlx5_7"])
    process(busy.root, 9, "qemu-system-x86", "/dev/infiniband/uverbs2")
    found = gather(busy)
    assert plan.of_port(found, Port(PCIS[0])) == ("pid 9 qemu-system-x86 holds mlx5_7",)
    assert plan.of_port(found, Port(PCIS[1])) == ()


def test_mounts_and_their_ports(busy: FakeNode) -> None:
    busy.put("/proc/self/mountinfo", "36 28 0:31 / /data rw - nfs4 192.0.2.9:/e rw,proto=rdma,addr=192.0.2.9\n"
                                     "40 28 0:35 / /bee rw - beegfs beegfs_nodev rw\n")
    busy.put("/sys/class/nvme/nvme3/transport", "rdma\n")
    busy.put("/sys/class/nvme/nvme3/address", "traddr=198.51.100.7,trsvcid=4420\n")
    routes = {"192.0.2.9": "rail0", "198.51.100.7": "rail1"}
    busy.override[("ip", "-j", "route", "get")] = lambda call: ok(json.dumps([{"dev": routes[call[4]]}]))
    assert gather(busy).mounts == (
        Mount("nfs4 192.0.2.9:/e at /data", "rail0"), Mount("beegfs beegfs_nodev at /bee"),
        Mount("nvme nvme3 of 198.51.100.7", "rail1"))
    busy.override[("ip", "-j", "route", "get")] = lambda call: failed(2, "unreachable")
    assert gather(busy).mounts[0] == Mount("nfs4 192.0.2.9:/e at /data")


def test_our_own_process_is_no_holder(tmp_path: Path, busy: FakeNode) -> None:
    process(busy.root, 1, "python3", UVERBS0)
    assert gather(busy).processes == ()
