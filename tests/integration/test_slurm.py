# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Slurm 24.11 from bare hosts: controller with accounting, four nodes of two classes. Tests are in their order.

All is read by Slurm's and MariaDB's own commands.
"""
from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration.slurm_hosts import (
    CTL,
    GB200,
    L40S,
    NAME,
    NODES,
    accounted,
    bare_hosts,
    daemons,
    idle,
    members,
    messages,
    out,
    slurm,
    starts,
    wait,
)
from tests.lab_plugin import ROOT, Lab, Labs, Play, lab_command

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bare(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Nothing of Slurm's; sl2 is not in the cluster yet."""
    with bare_hosts(labs, tmp_path_factory.mktemp("slurm"), NODES[:3]) as lab:
        yield lab


@pytest.fixture(scope="module")
def first(bare: Lab) -> Play:
    for host in (CTL, *NODES):
        for path in ("/etc/slurm", "/etc/munge", "/var/lib/slurm", "/var/lib/mysql"):
            assert not bare.host(host).file(path).exists
    return slurm(bare)


# -- the first run ----------------------------------------------------------------------------------------


def test_the_cluster_works_after_the_first_run(first: Play, bare: Lab) -> None:
    idle(bare, NODES[:3])
    said = out(bare, CTL, "srun", "-p", "all", "-N3", "hostname").split()
    assert sorted(said) == NODES[:3]
    assert "BlockName=nvl1" in out(bare, CTL, "scontrol", "show", "topology")
    # Configless: no file of Slurm's, and its commands work on compute hosts all the same.
    for host in NODES[:3]:
        assert not bare.host(host).file("/etc/slurm/slurm.conf").exists
        assert "train" in out(bare, host, "sinfo", "-h", "-o", "%P")
    assert out(bare, "sg1", "systemctl", "show", "--value", "-p", "LimitMEMLOCK", "slurmd") == "infinity"
    assert "PropagateResourceLimitsExcept = MEMLOCK" in re.sub(" +", " ", out(bare, CTL, "scontrol", "show", "config"))


def test_a_job_has_its_gpus_and_its_nics(first: Play, bare: Lab) -> None:
    for host, partition, rails, network in (
            ("sg1", "train", "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", "10.21.0.0/22"),
            ("sl1", "infer", "=mlx5_0:1,mlx5_1:1", "10.22.0.0/23")):
        said = dict(line.split("=", 1) for line in out(
            bare, CTL, "srun", "-p", partition, "-w", host, "--gres=gpu:4", "env").splitlines() if "=" in line)
        assert said["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
        assert (said["NCCL_IB_HCA"], said["NCCL_IB_ADDR_RANGE"]) == (rails, network)
        assert (said["NCCL_SOCKET_IFNAME"], said["NCCL_IB_TC"]) == ("=eth0", "104")
    own = out(bare, CTL, "env", "NCCL_IB_HCA==mlx5_2", "srun", "env")
    assert "NCCL_IB_HCA==mlx5_2\n" in own and own.count("NCCL_IB_HCA=") == 1


def test_accounting_has_the_job_in_mariadb(first: Play, bare: Lab) -> None:
    out(bare, CTL, "srun", "-J", "counted", "-p", "all", "-N2", "true")
    wait(lambda: [line.split("\t")[:3] for line in accounted(bare, "counted")], [["counted", "2", "3"]])


def test_secrets_are_where_they_belong_and_nowhere_else(first: Play, bare: Lab) -> None:
    keys = {host: out(bare, host, "base64", "-w0", "/etc/munge/munge.key") for host in (CTL, *NODES[:3])}
    assert len(set(keys.values())) == 1 and len(base64.b64decode(keys[CTL])) >= 32
    for host in keys:
        file = bare.host(host).file("/etc/munge/munge.key")
        assert (file.mode, file.user) == (0o400, "munge")
    secret = bare.host(CTL).file("/etc/slurm/slurmdbd-secret.conf")
    assert (secret.mode, secret.user) == (0o600, "slurm")
    password = secret.content_string.split("StoragePass=")[1].strip()
    again = slurm(bare, "--diff")
    for play in (first, again):
        assert keys[CTL] not in play.text and password not in play.text
    assert password not in bare.host(CTL).file("/etc/slurm/slurmdbd.conf").content_string


def test_a_second_run_changes_and_restarts_nothing(first: Play, bare: Lab) -> None:
    before = starts(bare)
    again = slurm(bare)
    assert again.changed() == {} and starts(bare) == before
    checked = slurm(bare, slurm_mode="verify")
    assert checked.changed() == {} and starts(bare) == before


def test_a_job_survives_a_restart_of_the_controller(first: Play, bare: Lab) -> None:
    out(bare, CTL, "sbatch", "-J", "survivor", "-p", "all", "-N2", "-o", "/dev/null", "--wrap", "sleep 8")
    wait(lambda: out(bare, CTL, "squeue", "-h", "-n", "survivor", "-o", "%T"), "RUNNING")
    out(bare, CTL, "systemctl", "restart", "slurmctld")
    assert out(bare, CTL, "squeue", "-h", "-n", "survivor", "-o", "%T") == "RUNNING"
    wait(lambda: [line.split("\t")[:3] for line in accounted(bare, "survivor")], [["survivor", "2", "3"]])


# -- changes ----------------------------------------------------------------------------------------------


def test_a_new_node_with_limit(first: Play, bare: Lab) -> None:
    members(bare, NODES)
    before = starts(bare)
    alone = slurm(bare, "--limit", "sl2", code=2)
    # Nobody else was touched, and the run says what is missing.
    assert sorted(alone.hosts()) == ["sl2"]
    assert {key: value for key, value in starts(bare).items() if not key.startswith("sl2")} == {
        key: value for key, value in before.items() if not key.startswith("sl2")}
    assert "--limit sl2,slurm_controller" in messages(alone)
    slurm(bare, "--limit", "sl2,slurm_controller")
    idle(bare, NODES)
    assert sorted(out(bare, CTL, "srun", "-p", "all", "-N4", "hostname").split()) == NODES
    after = starts(bare)
    assert all(after[key] == before[key] for key in before if key.split()[0] in NODES[:3])
    assert slurm(bare).changed() == {}


def test_a_changed_partition_is_a_reconfiguration(first: Play, bare: Lab) -> None:
    before = starts(bare)
    partitions = [{"name": "train", "groups": ["gb200"], "default": True, "max_time": "2-00:00:00"},
                  {"name": "infer", "groups": ["l40s"]}, {"name": "all", "groups": ["slurm_compute"]}]
    done = slurm(bare, slurm_partitions=partitions)
    assert list(done.changed()) == [CTL] and daemons(done) == {CTL: {"scontrol reconfigure"}}
    assert out(bare, CTL, "sinfo", "-h", "-p", "train", "-o", "%l").splitlines()[0] == "2-00:00:00"
    assert starts(bare) == before
    slurm(bare)
    assert starts(bare) == before


def test_changed_gres_reaches_the_nodes(first: Play, bare: Lab) -> None:
    folder = bare.inventory / "host_vars"
    folder.mkdir(exist_ok=True)
    node = {"sockets": 2, "cores_per_socket": 32, "threads_per_core": 1, "memory_mib": 16384, "gres_type": "ada"}
    before = starts(bare)
    for host in L40S:
        (folder / f"{host}.yml").write_text(yaml.safe_dump({"slurm_node": node}), encoding="utf-8")
    slurm(bare)
    idle(bare, NODES)
    assert out(bare, CTL, "srun", "-p", "infer", "--gres=gpu:ada:4", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1,2,3"
    assert bare.inside(CTL, "srun", "-p", "infer", "--gres=gpu:l40s:1", "true", check=False).returncode != 0
    after = starts(bare)
    assert all(after[key] == before[key] for key in before if key.split()[0] in GB200 and key.endswith("munge"))
    assert slurm(bare).changed() == {}


def test_nodes_that_a_run_did_not_come_to_are_made_good_by_the_next(first: Play, bare: Lab) -> None:
    """A port of slurmd needs a start of every slurmd; the run ended after slurmctld."""
    options = {"SlurmdParameters": "config_overrides", "SlurmdPort": 6828}
    before = starts(bare)
    slurm(bare, "--limit", CTL, slurm_options=options)
    between = starts(bare)
    assert all(between[key] == before[key] for key in before if not key.startswith(CTL))
    slurm(bare, slurm_options=options)
    idle(bare, NODES)
    assert all(starts(bare)[f"{node} slurmd"] != before[f"{node} slurmd"] for node in NODES)
    again = starts(bare)
    assert slurm(bare, slurm_options=options).changed() == {} and starts(bare) == again
    slurm(bare)
    idle(bare, NODES)
    assert slurm(bare).changed() == {}


# -- MPI ----------------------------------------------------------------------------------------------------

PROGRAM = "/usr/lib/nccl-tests-mpich/all_reduce_perf"
# UCX of MPICH would look for devices that a lab host has not (simulation.md 0.4).
MPI = ("--mpi=pmi2", "--export=ALL,UCX_TLS=tcp,self,UCX_NET_DEVICES=eth0,NCCL_DEBUG=INFO")


def rails(lab: Lab, host: str) -> dict[str, int]:
    """Bytes that the kernel has sent, by rail."""
    links = json.loads(out(lab, host, "ip", "-j", "-s", "link"))
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links if "np0" in link["ifname"]}


@pytest.fixture(scope="module")
def with_mpi(first: Play, bare: Lab) -> Lab:
    for host in NODES:
        bare.inside(host, "apt-get", "-q", "-y", "install", "nccl-tests-mpich")
    return bare


def test_a_run_of_nccl_tests_under_srun_moves_real_bytes(with_mpi: Lab) -> None:
    before = {host: rails(with_mpi, host) for host in GB200}
    said = out(with_mpi, CTL, "srun", "-p", "train", "-N2", "-n2", "--gres=gpu:4", *MPI, PROGRAM,
               "-g", "4", "-b", "4M", "-e", "4M", "-n", "2", "-w", "1")
    assert "SIMULATED" in said and "Out of bounds values : 0 OK" in said
    # As test_gate.py: warm-up, and twice one first, two timed, one checked collective over 8 ranks and 4 rails.
    expected = 2 * 7 / 8 * (4 << 20) / 4 * (1 + 2 * (1 + 2 + 1))
    for host in GB200:
        after = rails(with_mpi, host)
        assert all(after[rail] - count == pytest.approx(expected, rel=0.10) for rail, count in before[host].items())


def test_pairs_run_as_steps_of_one_allocation_across_blocks(with_mpi: Lab) -> None:
    """As a job of its own a pair across two blocks is refused (simulation.md 0.3)."""
    pair = ("srun", "-p", "all", "-w", "sg1,sl1", "-N2", "-n2")
    alone = with_mpi.inside(CTL, "timeout", "10", *pair, "--immediate=3", "hostname", check=False)
    step = " ".join(("srun --overlap --exact -N2 -n2", *MPI))
    run = f"{PROGRAM} -g 4 -b 1M -e 1M -n 2 -w 1"
    # The leaves of the two classes are not connected, so the pairs talk over the management network.
    script = (f"export NCCL_NET=Socket; {step} -w sg1,sl1 {run} >/tmp/one & {step} -w sg2,sl2 {run} >/tmp/two & "
              "wait; cat /tmp/one /tmp/two; rm /tmp/one /tmp/two")
    said = out(with_mpi, CTL, "salloc", "-Q", "-p", "all", "-N4", "--exclusive", "sh", "-c", script)
    assert said.count("Out of bounds values : 0 OK") == 2, said
    assert all(f" {host} " in said for host in NODES)
    assert alone.returncode != 0, alone.stdout


# -- killed -------------------------------------------------------------------------------------------------


def test_slurmctld_killed_before_each_task(
        first: Play, bare: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kill = lab_command("exec", CTL, "killall", "-9", "-q", "slurmctld", name=NAME)
    if bare.inside(CTL, "which", "killall", check=False).returncode != 0:
        kill = lab_command("exec", CTL, "pkill", "-9", "-x", "slurmctld", name=NAME)
    with monkeypatch.context() as patch:
        patch.setenv("AIDC_TEST_KILL", json.dumps(kill))
        patch.setenv("ANSIBLE_CALLBACK_PLUGINS", str(ROOT / "tests/integration/callbacks"))
        patch.setenv("ANSIBLE_CALLBACKS_ENABLED", "kill_slurmctld")
        slurm(bare, code=None, slurm_options={"SlurmdParameters": "config_overrides", "MessageTimeout": 20})
    slurm(bare)
    idle(bare, NODES)
    assert slurm(bare).changed() == {}
