# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle.model import QueuePair

UID = "6a4c1b1e-0d5f-4a55-9a0e-0123456789ab"
CONTAINER = "0123456789abcdef" * 4


def test_queue_pairs() -> None:
    text = ('[{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":1,"type":"GSI","state":"RTS","comm":"ib_core"},'
            '{"ifindex":0,"ifname":"mlx5_0","lqpn":80,"type":"RC","state":"RTS","pid":7,"comm":"train"},'
            '{"ifindex":0,"ifname":"mlx5_0","lqpn":81,"type":"RC","state":"RTS","pid":7,"comm":"train"},'
            '{"ifname":"mlx5_1","type":"UD","comm":"ib_ipoib"},{"ifname":"mlx5_1","type":"XRC_TGT","pid":8,"comm":"b"},'
            '{"ifname":"mlx5_2","type":"RC","comm":"[nvme_rdma]"}]')
    assert parse.queue_pairs(text) == (
        QueuePair("mlx5_0", "train", 7), QueuePair("mlx5_1", "b", 8), QueuePair("mlx5_2", "[nvme_rdma]"))
    assert parse.queue_pairs("\n") == ()


@pytest.mark.parametrize("text", ["garbage", "{", '{"a": 1}', "[1]", '[{"x": 1}]'])
def test_garbage_is_told_apart(text: str) -> None:
    with pytest.raises(ValueError):
        parse.queue_pairs(text)


@pytest.mark.parametrize(("text", "job"), [
    ("0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n", ("Slurm job 4242 step 0", True)),
    ("0::/system.slice/gb1_slurmstepd.scope/job_7/step_batch/slurm\n", ("Slurm job 7 step batch", True)),
    ("0::/system.slice/slurmstepd.scope/sABCD1234/step_extern/user/task_special\n",
     ("Slurm job sABCD1234 step extern", True)),
    ("9:devices:/slurm/uid_1000/job_11/step_3/task_1\n1:name=systemd:/\n", ("Slurm job 11 step 3", True)),
    ("9:devices:/slurm_gb1/uid_0/job_12/step_interactive\n", ("Slurm job 12 step interactive", True)),
    ("0::/system.slice/slurmstepd.scope/system\n", ("", False)),
    ("0::/system.slice/slurmd.service\n", ("", False)),
    (f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/"
     f"cri-containerd-{CONTAINER}.scope\n", (f"pod {UID} container {CONTAINER[:12]}", False)),
    (f"11:memory:/kubepods/besteffort/pod{UID}/{CONTAINER}\n", (f"pod {UID} container {CONTAINER[:12]}", False)),
    (f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{'ab' * 16}.slice\n", (f"pod {'ab' * 16}", False)),
    ("0::/user.slice/user-0.slice/session-1.scope\n", ("", False)), ("", ("", False)),
])
def test_cgroups(text: str, job: tuple[str, bool]) -> None:
    assert parse.cgroup_job(text) == job


def test_slurm_without_cgroups() -> None:
    assert parse.stepd_job(b"slurmstepd: [4242.0]\0\0") == "Slurm job 4242 step 0"
    assert parse.stepd_job(b"slurmstepd: [4242.extern]") == "Slurm job 4242 step extern"
    assert parse.stepd_job(b"/usr/sbin/slurmstepd\0infinity\0") == ""
    assert parse.stepd_job(b"grep\0slurmstepd: [1.0]\0") == ""
    assert parse.environment_job(b"A=1\0SLURM_JOB_ID=9\0SLURM_STEP_ID=2\0") == "Slurm job 9 step 2"
    assert parse.environment_job(b"SLURM_JOB_ID=9\0") == "Slurm job 9 step batch"
    assert parse.environment_job(b"SLURM_JOB_IDX=9\0SECRET=x\0") == ""


def test_device_files() -> None:
    assert parse.uverbs("/dev/infiniband/uverbs12") == "uverbs12"
    assert parse.uverbs("/run/containerd/x/rootfs/dev/infiniband/uverbs0 (deleted)") == "uverbs0"
    assert parse.uverbs("/dev/infiniband/rdma_cm") is None
    assert parse.is_gpu("/dev/nvidia0") and not parse.is_gpu("/dev/nvidiactl") and not parse.is_gpu("/dev/nvidia-uvm")


MOUNTS = """\
36 28 0:31 / /data rw,relatime shared:1 - nfs4 192.0.2.9:/export rw,vers=4.2,proto=rdma,port=20049,addr=192.0.2.9
37 28 0:32 / /home rw,relatime shared:1 - nfs4 192.0.2.8:/home rw,vers=4.2,proto=tcp,addr=192.0.2.8
38 28 0:33 / /scratch rw - lustre 192.0.2.5@o2ib:192.0.2.6@o2ib1:/fs rw,flock
39 28 0:34 / /work rw - lustre 192.0.2.5@tcp:/fs rw
40 28 0:35 / /bee rw - beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/beegfs-client.conf
41 28 0:36 / /sys rw - sysfs sysfs rw
broken line
"""


def test_mounts() -> None:
    assert parse.rdma_mounts(MOUNTS) == (
        ("nfs4 192.0.2.9:/export at /data", ("192.0.2.9",)),
        ("lustre 192.0.2.5@o2ib:192.0.2.6@o2ib1:/fs at /scratch", ("192.0.2.5", "192.0.2.6")),
        ("beegfs beegfs_nodev at /bee", ()))
    assert parse.nvme_rdma_server("rdma", "traddr=192.0.2.7,trsvcid=4420") == "192.0.2.7"
    assert parse.nvme_rdma_server("tcp", "traddr=192.0.2.7,trsvcid=4420") is None
    assert parse.nvme_rdma_server("pcie", "0000:01:00.0") is None


def test_texts() -> None:
    assert parse.texts(["a", "b"], ["b", "c"]) == ("a", "b", "c")
