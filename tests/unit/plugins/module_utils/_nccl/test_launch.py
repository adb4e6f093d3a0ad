# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl import launch
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.launch import Host, Job

HOSTS = (Host("node1", "192.0.2.1", "node1", 22, ("ssh-ed25519 AAAA1",)),
         Host("node2", "192.0.2.2", "node2.example.com", 2222, ("ssh-ed25519 AAAA2", "ssh-rsa BBBB2")))
JOB = Job(HOSTS, "run-1", "/home/ops/.aidc/runs/run-1", "ops", 4, "/opt/all_reduce_perf", "/usr/bin/mpirun",
          min_bytes="8M", max_bytes="1G", iterations=3, warmup_iterations=1, network="192.0.2.0/24",
          environment={"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_DEBUG": "INFO"})
TEST = ["/opt/all_reduce_perf", "-b", "8M", "-e", "1G", "-f", "2", "-g", "4", "-n", "3", "-w", "1", "-c", "1"]
RUN = "/home/ops/.aidc/runs/run-1"


def test_command_for_open_mpi_5() -> None:
    assert launch.command(JOB, 5) == [
        "/usr/bin/mpirun", "--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", f"ssh -F {RUN}/ssh_config",
        "--prtemca", "plm_ssh_no_tree_spawn", "1", "--prtemca", "prte_tmpdir_base", f"{RUN}/tmp",
        "--prtemca", "prte_if_include", "192.0.2.0/24",
        "--mca", "pml", "^ucx", "--mca", "osc", "^ucx", "--mca", "coll", "^hcoll", "--mca", "btl", "self,sm,tcp",
        "--mca", "btl_tcp_if_include", "192.0.2.0/24", "--hostfile", f"{RUN}/hosts", "-np", "2",
        "--map-by", "ppr:1:node", "--bind-to", "none",
        "-x", "AIDC_NCCL_RUN_ID", "-x", "NCCL_DEBUG", "-x", "NCCL_IB_HCA", *TEST,
    ]


def test_command_for_open_mpi_4_uses_its_own_names() -> None:
    words = launch.command(JOB, 4)
    assert "--prtemca" not in words and words[words.index("plm_rsh_agent") + 1] == f"ssh -F {RUN}/ssh_config"
    assert "self,vader,tcp" in words and words[words.index("oob_tcp_if_include") + 1] == "192.0.2.0/24"
    assert words[-len(TEST):] == TEST


def test_without_a_network_none_is_named() -> None:
    words = launch.command(dataclasses.replace(JOB, network=""), 5)
    assert not {"prte_if_include", "btl_tcp_if_include"} & set(words)


def test_one_process_for_each_gpu() -> None:
    words = launch.command(dataclasses.replace(JOB, processes_per_host=4), 5)
    assert words[words.index("-np") + 1] == "8" and "ppr:4:node" in words and words[words.index("-g") + 1] == "1"
    assert launch.host_file(dataclasses.replace(JOB, processes_per_host=4)).startswith("192.0.2.1 slots=4\n")


def test_only_what_was_asked_for_is_forwarded_and_no_value_stands_in_the_command() -> None:
    own = {"PATH": "/bin", "HOME": "/home/ops", "SECRET_TOKEN": "x", "NCCL_P2P_DISABLE": "1"}
    assert launch.environment(JOB, own) == {
        "PATH": "/bin", "HOME": "/home/ops", "LC_ALL": "C", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
        "NCCL_DEBUG": "INFO", "AIDC_NCCL_RUN_ID": "run-1",
    }
    assert "INFO" not in launch.command(JOB, 5)


def test_files() -> None:
    files = launch.files(JOB)
    assert files["hosts"] == "192.0.2.1 slots=1\n192.0.2.2 slots=1\n"
    assert files["known_hosts"] == ("192.0.2.1 ssh-ed25519 AAAA1\n[192.0.2.2]:2222 ssh-ed25519 AAAA2\n"
                                    "[192.0.2.2]:2222 ssh-rsa BBBB2\n")
    config = files["ssh_config"]
    # For ssh the first value counts: a port after "Host *" would come too late.
    assert config.startswith("Host 192.0.2.2\n  Port 2222\nHost *\n")
    for line in ("StrictHostKeyChecking yes", f"UserKnownHostsFile {RUN}/known_hosts", "BatchMode yes", "User ops",
                 f"IdentityFile {RUN}/id", "IdentitiesOnly yes", "GlobalKnownHostsFile /dev/null"):
        assert f"  {line}\n" in config


@pytest.mark.parametrize(("changes", "text"), [
    ({"hosts": (dataclasses.replace(HOSTS[0], host_keys=()),)}, "node1.host_keys"),
    ({"hosts": (dataclasses.replace(HOSTS[0], address="-oProxyCommand=x"),)}, "node1.address"),
    ({"hosts": (HOSTS[0], HOSTS[0])}, "an address twice"),
    ({"processes_per_host": 3}, "divisor"),
    ({"gpus_per_host": 0}, "divisor"),
    ({"min_bytes": "2G"}, "min_bytes"),
    ({"max_bytes": "1T"}, "max_bytes"),
    ({"environment": {"A B": "x"}}, "environment"),
    ({"run_dir": "/home/o ps/x"}, "run_dir"),
])
def test_what_cannot_be_run_is_refused_before_anything_starts(changes: dict[str, object], text: str) -> None:
    with pytest.raises(AidcError, match=text):
        launch.check(dataclasses.replace(JOB, **changes))  # type: ignore[arg-type]
    launch.check(JOB)


@pytest.mark.parametrize(("text", "major"), [
    ("mpirun (Open MPI) 5.0.7\n", 5), ("mpirun (Open MPI) 4.1.7a1\n", 4), ("HYDRA build details:", None), ("", None),
])
def test_version(text: str, major: int | None) -> None:
    assert launch.major_of(text) == major


def test_what_the_judge_is_told() -> None:
    expected = launch.expected(JOB, exit_code=0)
    assert (expected.ranks, expected.nodes, expected.hosts) == (8, 2, ("node1", "node2.example.com"))
    assert (expected.collective, expected.min_bytes, expected.max_bytes) == ("all_reduce", 8 << 20, 1 << 30)
    assert expected.exit_code == 0 and not expected.allow_simulated
