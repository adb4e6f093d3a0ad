# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong in a real Slurm cluster, each with a twin that is no fault. Tests are in their order."""
from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.slurm_hosts import (
    CTL,
    NAME,
    NODES,
    accounted,
    bare_hosts,
    idle,
    messages,
    out,
    slurm,
    starts,
    states,
    wait,
)
from tests.lab_plugin import ROOT, Lab, Labs, lab_command, run_lab

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow
# The host with the fault, and one without.
TWO = ("--limit", "sg1,sl1")


@pytest.fixture(scope="module")
def cluster(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with bare_hosts(labs, tmp_path_factory.mktemp("slurm"), NODES) as lab:
        slurm(lab)
        idle(lab, NODES)
        yield lab


def task(lab: Lab, folder: Path, module: str, code: int, **options: Any) -> dict[str, Any]:
    """One call of a module on the controller; its result."""
    play = folder / "task.yml"
    play.write_text(yaml.safe_dump([{"hosts": CTL, "gather_facts": False, "become": True, "tasks": [
        {"name": "Task", f"aidc.gpu_cluster.{module}": options}]}]), encoding="utf-8")
    done = lab.play(str(play))
    assert done.code == code, done.text[-3000:]
    return dict(done.tasks[-1]["hosts"][CTL])


def node_task(lab: Lab, folder: Path, code: int, **options: Any) -> dict[str, Any]:
    return task(lab, folder, "slurm_node", code, **options)


def reason(lab: Lab, node: str) -> str:
    return out(lab, CTL, "sinfo", "-h", "-n", node, "-o", "%E").splitlines()[0]


def test_another_munge_key(cluster: Lab) -> None:
    cluster.inside("sl1", "sh", "-c", "head -c 128 /dev/urandom >/etc/munge/munge.key; systemctl restart munge")
    told = slurm(cluster, *TWO, slurm_mode="verify", code=2)
    assert "sl1: would change: munge key" in messages(told) and "sg1" not in messages(told)
    slurm(cluster, *TWO)
    idle(cluster, NODES)
    # The twin: the same key, munge started anew.
    cluster.inside("sl1", "systemctl", "restart", "munge")
    assert slurm(cluster, slurm_mode="verify").changed() == {}


def test_the_key_is_right_and_munge_runs_with_an_older_one(cluster: Lab) -> None:
    """What a run leaves that was killed between the key and the restart."""
    script = ("cp -p /etc/munge/munge.key /etc/munge/good; head -c 128 /dev/urandom >/etc/munge/munge.key; "
              "systemctl restart munge; sleep 1; mv /etc/munge/good /etc/munge/munge.key; touch /etc/munge/munge.key")
    cluster.inside("sl1", "sh", "-c", script)
    assert "sl1" in messages(slurm(cluster, *TWO, slurm_mode="verify", code=2))
    assert list(slurm(cluster, *TWO).changed()) == ["sl1"]
    assert slurm(cluster, *TWO).changed() == {}


@pytest.mark.parametrize(("offset", "word"), [("-20m", "Rewound"), ("+20m", "Expired"), ("+30s", "")])
def test_the_clock_of_a_host_is_another(cluster: Lab, offset: str, word: str) -> None:
    """Credentials of munge live for five minutes; half a minute is no fault."""
    cluster.inside("sl1", "apt-get", "-q", "-y", "install", "libfaketime")
    library = out(cluster, "sl1", "sh", "-c", "dpkg -L libfaketime | grep MT.so")
    drop_in = f"[Service]\\nEnvironment=LD_PRELOAD={library} FAKETIME={offset}\\n"
    folder = "/run/systemd/system/munge.service.d"
    cluster.inside("sl1", "sh", "-c", f"mkdir -p {folder}; printf '{drop_in}' >{folder}/clock.conf; "
                   "systemctl daemon-reload; systemctl restart munge")
    try:
        told = messages(slurm(cluster, *TWO, code=2 if word else 0))
    finally:
        cluster.inside("sl1", "sh", "-c", f"rm {folder}/clock.conf; systemctl daemon-reload; systemctl restart munge")
    if word:
        assert f"sl1: munge: {word} credential (" in told and "time service of both hosts" in told
        assert "sg1" not in told
    wait(lambda: states(cluster)["sl1"], "idle", 120)


def test_slurmdbd_is_down(cluster: Lab) -> None:
    cluster.inside(CTL, "systemctl", "stop", "slurmdbd")
    assert "would change: slurmdbd" in messages(slurm(cluster, slurm_mode="verify", code=2))
    # Jobs run on, and are accounted once it is back.
    out(cluster, CTL, "srun", "-J", "meanwhile", "true")
    slurm(cluster)
    wait(lambda: len(accounted(cluster, "meanwhile")), 1)


def test_a_configuration_that_slurmctld_refuses(cluster: Lab) -> None:
    before = starts(cluster)
    wrong = {"SlurmdParameters": "config_overrides", "NoSuchKey": "1"}
    told = slurm(cluster, slurm_options=wrong, code=2)
    assert "NoSuchKey" in messages(told)
    idle(cluster, NODES)
    assert "NoSuchKey" not in cluster.host(CTL).file("/etc/slurm/slurm.conf").content_string
    after = starts(cluster)
    assert all(after[key] == before[key] for key in before if not key.startswith(CTL))
    assert slurm(cluster).changed() == {}
    # The twin: a key that Slurm knows.
    slurm(cluster, slurm_options={"SlurmdParameters": "config_overrides", "MessageTimeout": 20})
    assert slurm(cluster).code == 0


def test_the_disk_of_the_controller_is_full(cluster: Lab) -> None:
    """/etc/slurm on a file system of its own, without room for the new files; then with room."""
    partitions = [{"name": "train", "groups": ["gb200"], "default": True}, {"name": "infer", "groups": ["l40s"]},
                  {"name": "all", "groups": ["slurm_compute"], "max_time": "1-00:00:00"}]
    cluster.inside(CTL, "sh", "-euc", "cp -a /etc/slurm /root/kept; mount -t tmpfs -o size=256k,mode=755 full "
                   "/etc/slurm; cp -a /root/kept/. /etc/slurm; dd if=/dev/zero of=/etc/slurm/big bs=1k || true")
    try:
        read = ("sh", "-c", "cd /etc/slurm; sha256sum *.conf; pgrep -x slurmctld")
        before = out(cluster, CTL, *read)
        told = messages(slurm(cluster, slurm_partitions=partitions, code=2))
        assert f"{CTL}: /etc/slurm: got No space left on device, wanted room for the new files" in told
        # Nothing is lost or half-written, and what ran runs.
        assert out(cluster, CTL, *read) == before
        assert out(cluster, CTL, "sh", "-c", "ls -A /etc/slurm | grep new || true") == ""
        idle(cluster, NODES)
        cluster.inside(CTL, "rm", "/etc/slurm/big")
        slurm(cluster, slurm_partitions=partitions)
        assert out(cluster, CTL, "sinfo", "-h", "-p", "all", "-o", "%l").splitlines()[0] == "1-00:00:00"
    finally:
        cluster.inside(CTL, "sh", "-c", "umount -l /etc/slurm; rm -r /root/kept")
    slurm(cluster)
    assert slurm(cluster).changed() == {}


def test_whose_drain_it_is(cluster: Lab, tmp_path: Path) -> None:
    ours: dict[str, Any] = {"source": "gate", "run_id": "r1"}
    # Somebody else's, and he writes more to it.
    cluster.inside(CTL, "scontrol", "update", "nodename=sl1", "state=drain", "reason=bob: fan 3")
    told = node_task(cluster, tmp_path, 2, nodes=["sl1"], state="drained", reason="rail 2 slow", **ours)
    assert "bob: fan 3" in told["msg"] and reason(cluster, "sl1") == "bob: fan 3"
    held = node_task(cluster, tmp_path, 0, nodes=["sl1", "sl2"], state="drained", reason="rail 2 slow",
                     when_held="keep", **ours)
    assert held["held"] == ["sl1"] and reason(cluster, "sl1") == "bob: fan 3"
    assert reason(cluster, "sl2") == "aidc:gate:r1: rail 2 slow"
    again = node_task(cluster, tmp_path, 0, nodes=["sl2"], state="drained", reason="rail 2 slow", **ours)
    assert again["changed"] is False
    # The role leaves both alone.
    assert slurm(cluster).changed() == {}
    told = node_task(cluster, tmp_path, 2, nodes=["sl1", "sl2"], state="resumed", **ours)
    assert "bob: fan 3" in told["msg"] and states(cluster)["sl2"] == "drained"
    # What somebody has added to ours is lost with it, so it is not resumed; the twin is what Slurm adds and is settled.
    cluster.inside(CTL, "scontrol", "update", "nodename=sl2", "reason=aidc:gate:r1: rail 2 slow : Kill task failed")
    told = node_task(cluster, tmp_path, 2, nodes=["sl2"], state="resumed", **ours)
    assert "Kill task failed" in told["msg"] and states(cluster)["sl2"] == "drained"
    cluster.inside(CTL, "scontrol", "update", "nodename=sl2", "reason=aidc:gate:r1: rail 2 slow : Not responding")
    assert node_task(cluster, tmp_path, 0, nodes=["sl2"], state="resumed", **ours)["changed"] is True
    assert node_task(cluster, tmp_path, 0, nodes=["sl1"], state="resumed", force_reason="bob: fan 3")["changed"] is True
    idle(cluster, NODES)
    assert reason(cluster, "sl2") == "none"


def test_sinfo_says_all_nodes_whatever_it_is_asked(cluster: Lab, tmp_path: Path) -> None:
    """`sinfo --json -n NODE` of 24.11 leaves the filter out; slurm_info does not."""
    said = json.loads(out(cluster, CTL, "sinfo", "--json", "-n", "sl2"))
    assert len({name for entry in said["sinfo"] for name in entry["nodes"]["nodes"]}) >= 1
    assert [node["name"] for node in task(cluster, tmp_path, "slurm_info", 0, nodes=["sl2"])["nodes"]] == ["sl2"]


def test_nodes_are_held_for_a_run(cluster: Lab, tmp_path: Path) -> None:
    """A real slurmctld: held from others, refused while a job is there, what a killed run left is removed."""
    run: dict[str, Any] = {"purpose": "gate-l40s", "run_id": "r1", "nodes": ["sl[1-2]"], "minutes": 5}
    held = task(cluster, tmp_path, "slurm_reservation", 0, **run)
    assert held["changed"] and task(cluster, tmp_path, "slurm_reservation", 0, **run)["changed"] is False
    refused = cluster.inside(CTL, "srun", "-p", "infer", "-w", "sl1", "--immediate=2", "true", check=False)
    assert refused.returncode != 0
    assert out(cluster, CTL, "srun", "-p", "infer", f"--reservation={held['name']}", "-N2", "hostname").split() != []
    # The twin: a node that is not held takes jobs, and the role finds nothing to do.
    out(cluster, CTL, "srun", "-p", "train", "-w", "sg1", "true")
    assert slurm(cluster).changed() == {}
    later = task(cluster, tmp_path, "slurm_reservation", 0, **{**run, "run_id": "r2"})
    assert [one["name"] for one in later["after"]] == ["aidc.gate-l40s.r2"]
    assert task(cluster, tmp_path, "slurm_reservation", 0, purpose="gate-l40s", state="absent")["after"] == []
    assert out(cluster, CTL, "scontrol", "-o", "show", "reservation") == "No reservations in the system"
    out(cluster, CTL, "sbatch", "-J", "busy", "-p", "infer", "-w", "sl2", "-o", "/dev/null", "--wrap", "sleep 30")
    wait(lambda: out(cluster, CTL, "squeue", "-h", "-n", "busy", "-o", "%T"), "RUNNING")
    told = task(cluster, tmp_path, "slurm_reservation", 2, **run)
    assert "of root on sl2, wanted nodes without jobs" in told["msg"], told["msg"]
    out(cluster, CTL, "scancel", "-n", "busy")
    idle(cluster, NODES)


HANGS = "#!/bin/sh\nexec sleep 3000\n"


def test_a_tool_of_the_health_program_hangs(cluster: Lab) -> None:
    """A tool that never answers: the program ends in its time, no process stays, and no verdict drains nobody."""
    health = ("env", "SLURMD_NODENAME=sg1", "/usr/libexec/aidc/aidc-health.pyz", "run", "--json")
    quiet = json.loads(cluster.inside("sg1", *health, check=False).stdout)
    assert quiet["failed"] == {} and quiet["action"] == "none", quiet
    rdma = out(cluster, "sg1", "sh", "-c", "command -v rdma")
    cluster.inside("sg1", "sh", "-c", f"cp -p {rdma} {rdma}.kept; printf '{HANGS}' >{rdma}")
    try:
        for _ in range(3):
            start = time.monotonic()
            told = json.loads(cluster.inside("sg1", *health, check=False).stdout)
            assert time.monotonic() - start < 30, told
        assert any(result["ok"] is None for result in told["results"]), told
        assert out(cluster, "sg1", "sh", "-c", "pgrep -f '[s]leep 3000' || true") == ""
        assert states(cluster)["sg1"] == "idle"
    finally:
        cluster.inside("sg1", "mv", f"{rdma}.kept", rdma)


def test_the_health_program_drains_and_takes_its_drain_back(cluster: Lab) -> None:
    """Started by slurmd itself, every few seconds here: a port that is down drains its node alone."""
    # As those of the lab's inventory.
    options = {"resume": True, "gpus_from": "device_files", "memlock_bytes": 8388608}
    slurm(cluster, slurm_health_interval=5, slurm_health_options=options)
    cluster.inside("sg1", "ip", "link", "set", "enP16p3s0f0np0", "down")
    try:
        wait(lambda: states(cluster)["sg1"], "drained", 90)
        assert reason(cluster, "sg1").startswith("aidc:health:") and "enP16p3s0f0np0" in reason(cluster, "sg1")
        assert {name for name, state in states(cluster).items() if state != "idle"} == {"sg1"}
    finally:
        cluster.inside("sg1", "ip", "link", "set", "enP16p3s0f0np0", "up")
    wait(lambda: states(cluster)["sg1"], "idle", 120)
    slurm(cluster)
    assert slurm(cluster).changed() == {}


def test_a_gpu_is_missing_and_a_reboot_brings_it_back(cluster: Lab) -> None:
    # slurmd waits a minute for the device file before it starts.
    cluster.inside("sg2", "sh", "-c", "rm /dev/nvidia3; systemctl --no-block restart slurmd")
    told = messages(slurm(cluster, code=2, slurm_wait_seconds=20))
    assert "sg2" in told and "sg1" not in told
    run_lab("reboot", "sg2", name=NAME)
    wait(lambda: states(cluster)["sg2"].rstrip("*") in ("idle", "drained", "inval"), True)
    cluster.inside(CTL, "scontrol", "update", "nodename=sg2", "state=resume", check=False)
    idle(cluster, NODES)
    assert slurm(cluster).changed() == {}


def test_a_reboot_needs_nobody(cluster: Lab) -> None:
    """The twin of a node that does not come back."""
    run_lab("reboot", "sl2", name=NAME)
    wait(lambda: states(cluster)["sl2"], "idle", 120)
    assert slurm(cluster).changed() == {}


def test_a_host_that_is_down_stays_in_the_cluster(cluster: Lab) -> None:
    config = cluster.host(CTL).file("/etc/slurm/slurm.conf").content_string
    # Connections that are kept open would reach it all the same.
    cluster.inside("sl2", "sh", "-c", "systemctl stop ssh.service ssh.socket; pkill -9 -f '[s]shd'", check=False)
    done = slurm(cluster, code=4)
    assert done.stats["sl2"]["unreachable"] == 1
    assert cluster.host(CTL).file("/etc/slurm/slurm.conf").content_string == config
    assert states(cluster)["sl2"] == "idle"
    subprocess.run(lab_command("reboot", "--cold", "sl2", name=NAME), cwd=ROOT, check=True, capture_output=True)
