# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Slurm 24.11 from bare hosts: controller with accounting, four nodes of two classes. Tests are in their order.

All is read by Slurm's and MariaDB's own commands.
"""
from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration.slurm_hosts import (
    CTL,
    GB200,
    L40S,
    NODES,
    accounted,
    daemons,
    idle,
    members,
    messages,
    out,
    slurm,
    starts,
    states,
    wait,
)
from tests.lab_plugin import ROOT, Lab, Labs, Play, lab_command, run_lab

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow

NAME, FLEET = "slurm", "tests/integration/fleets/slurm.yml"
# The rails' addresses, which the NCCL profile is made of.
RAILS = """\
- hosts: gb200:l40s
  gather_facts: false
  roles:
    - role: aidc.gpu_cluster.rdma_stack
    - role: aidc.gpu_cluster.rail_network
"""


@pytest.fixture(scope="module")
def bare(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Hosts with rails and repositories and nothing of Slurm's; sl2 is not in the cluster yet."""
    with labs.during(NAME, FLEET) as lab:
        members(lab, NODES[:3])
        done = lab.play("playbooks/packages.yml")
        assert done.code == 0, done.text[-4000:]
        play = tmp_path_factory.mktemp("slurm") / "rails.yml"
        play.write_text(RAILS, encoding="utf-8")
        done = lab.play(str(play))
        assert done.code == 0, done.text[-4000:]
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


# -- faults, and what is none ------------------------------------------------------------------------------


def test_another_munge_key(first: Play, bare: Lab) -> None:
    bare.inside("sl1", "sh", "-c", "head -c 128 /dev/urandom >/etc/munge/munge.key; systemctl restart munge")
    told = slurm(bare, slurm_mode="verify", code=2)
    assert "sl1: would change: munge key" in messages(told) and "sg1" not in messages(told)
    slurm(bare)
    idle(bare, NODES)
    # The twin: the same key, munge started anew.
    bare.inside("sl1", "systemctl", "restart", "munge")
    assert slurm(bare, slurm_mode="verify").changed() == {}


def test_the_key_is_right_and_munge_runs_with_an_older_one(first: Play, bare: Lab) -> None:
    """What a run leaves that was killed between the key and the restart."""
    script = ("cp -p /etc/munge/munge.key /etc/munge/good; head -c 128 /dev/urandom >/etc/munge/munge.key; "
              "systemctl restart munge; sleep 1; mv /etc/munge/good /etc/munge/munge.key; touch /etc/munge/munge.key")
    bare.inside("sl1", "sh", "-c", script)
    assert "sl1" in messages(slurm(bare, slurm_mode="verify", code=2))
    assert "sl1" in slurm(bare).changed()
    assert slurm(bare).changed() == {}


def test_slurmdbd_is_down(first: Play, bare: Lab) -> None:
    bare.inside(CTL, "systemctl", "stop", "slurmdbd")
    assert "would change: slurmdbd" in messages(slurm(bare, slurm_mode="verify", code=2))
    # Jobs run on, and are accounted once it is back.
    out(bare, CTL, "srun", "-J", "meanwhile", "true")
    slurm(bare)
    wait(lambda: len(accounted(bare, "meanwhile")), 1)


def test_a_configuration_that_slurmctld_refuses(first: Play, bare: Lab) -> None:
    before = starts(bare)
    wrong = {"SlurmdParameters": "config_overrides", "NoSuchKey": "1"}
    told = slurm(bare, slurm_options=wrong, code=2)
    assert "NoSuchKey" in messages(told)
    idle(bare, NODES)
    assert "NoSuchKey" not in bare.host(CTL).file("/etc/slurm/slurm.conf").content_string
    after = starts(bare)
    assert all(after[key] == before[key] for key in before if not key.startswith(CTL))
    assert slurm(bare).changed() == {}
    # The twin: a key that Slurm knows.
    slurm(bare, slurm_options={"SlurmdParameters": "config_overrides", "MessageTimeout": 20})
    assert slurm(bare).code == 0


def test_a_gpu_is_missing_and_a_reboot_brings_it_back(first: Play, bare: Lab) -> None:
    bare.inside("sg2", "sh", "-c", "rm /dev/nvidia3; systemctl restart slurmd", check=False)
    told = messages(slurm(bare, code=2, slurm_wait_seconds=20))
    assert "sg2" in told and "sg1" not in told
    run_lab("reboot", "sg2", name=NAME)
    wait(lambda: states(bare)["sg2"].rstrip("*") in ("idle", "drained", "inval"), True)
    bare.inside(CTL, "scontrol", "update", "nodename=sg2", "state=resume", check=False)
    idle(bare, NODES)
    assert slurm(bare).changed() == {}


def test_a_reboot_needs_nobody(first: Play, bare: Lab) -> None:
    """The twin of a node that does not come back."""
    run_lab("reboot", "sl2", name=NAME)
    wait(lambda: states(bare)["sl2"], "idle", 120)
    assert slurm(bare).changed() == {}


def test_a_host_that_is_down_stays_in_the_cluster(first: Play, bare: Lab) -> None:
    config = bare.host(CTL).file("/etc/slurm/slurm.conf").content_string
    bare.inside("sl2", "systemctl", "stop", "ssh.service", "ssh.socket", check=False)
    done = slurm(bare, code=4)
    assert done.stats["sl2"]["unreachable"] == 1
    assert bare.host(CTL).file("/etc/slurm/slurm.conf").content_string == config
    assert states(bare)["sl2"] == "idle"
    subprocess.run(lab_command("reboot", "--cold", "sl2", name=NAME), cwd=ROOT, check=True, capture_output=True)
