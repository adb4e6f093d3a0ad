# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health program as slurmd starts it, against a node and a slurmctld that are models."""
from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import cli
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health.model import CONFIG, STATE, Options
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from plugins.plugin_utils import boot_archive
from tests.unit.plugins.fake import FakeNode
from tests.unit.plugins.module_utils._slurm.fake_slurm import Fake, FakeSlurm

CODE = Path(__file__).resolve().parents[5] / "plugins" / "module_utils"
SLURMD = {"SLURMD_NODENAME": "n1"}
PROLOG = {**SLURMD, "SLURM_SCRIPT_CONTEXT": "prolog_slurmd"}
PORT = "/sys/class/infiniband/mlx5_0/ports/1/state"
INTENT = {"schema_version": 1, "run_id": None, "time": "2026-01-02T03:04:05Z", "sections": {"roce_gid": {
    "ports": [{"pci": "0000:03:00.0"}], "subnets": ["198.51.100.0/24"]}}}


class Host:
    """One node with its slurmctld."""

    def __init__(self, node: FakeNode) -> None:
        self.node, self.slurm = node, FakeSlurm(node.root, {"n1": Fake()})
        node.put("/etc/aidc/intent.json", json.dumps(INTENT))
        self.configure(resume=True)
        self.text = ""

    def configure(self, **options: t.Any) -> None:
        given = {"checks": ("ports", "gid", "disk"), "disks": (), **options}
        self.node.put(CONFIG, Options(**given).text())

    def machine(self) -> Machine:
        def run(argv: t.Sequence[str], timeout_seconds: float) -> Result:
            return (self.slurm if argv[0] == "scontrol" else self.node).run(argv, timeout_seconds)

        return dataclasses.replace(self.node.machine(), run=run)

    def __call__(self, capsys: pytest.CaptureFixture[str], environment: dict[str, str] = SLURMD, *argv: str) -> int:
        status = cli.main(argv, self.machine(), environment)
        said = capsys.readouterr()
        self.text = said.out + said.err
        return status

    @property
    def reason(self) -> str:
        return self.slurm.nodes["n1"].reason


@pytest.fixture
def host(node: FakeNode) -> Host:
    return Host(node)


def test_a_healthy_node(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert host(capsys) == 0 and host.text == "none: healthy\n" and not host.slurm.updates


def test_a_port_goes_down_and_comes_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.node.put(PORT, "1: DOWN\n")
    assert host(capsys) == 0 and not host.slurm.updates
    assert host(capsys) == 2
    assert host.reason == "aidc:health: ports: 0000:03:00.0 (rail0, mlx5_0): RDMA port is 1: DOWN"
    assert host(capsys) == 2 and len(host.slurm.updates) == 1
    host.node.put(PORT, "4: ACTIVE\n")
    assert [host(capsys) for _run in range(3)] == [2, 2, 0]
    assert host.slurm.nodes["n1"].flags == {"NOT_RESPONDING"} and host.reason == ""


def test_resume_is_off_unless_asked_for(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.configure()
    host.slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "aidc:health: ports: x")
    for _run in range(5):
        assert host(capsys) == 0
    assert not host.slurm.updates and "resume is off" in host.text


def test_a_lost_gid_is_drift(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.node.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n")
    assert [host(capsys) for _run in range(2)] == [0, 2]
    assert host.reason.startswith("aidc:health: gid: 0000:03:00.0 (rail0): no GID that fits")


def test_somebody_changes_the_host(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of a role holds the host's lock: what differs meanwhile is no drift."""
    import fcntl
    host.node.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n")
    path = host.node.root / "run/lock/aidc.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [host(capsys) for _run in range(3)] == [0, 0, 0]
        assert "gid: no verdict: /run/lock/aidc.lock: got held by" in host.text and not host.slurm.updates


def test_anothers_reason_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "owner-A: broken fan")
    host.node.put(PORT, "1: DOWN\n")
    assert [host(capsys) for _run in range(3)] == [0, 2, 2]
    assert host.reason == "owner-A: broken fan" and not host.slurm.updates and "left alone" in host.text


@pytest.mark.parametrize("result", [
    Result((), "failed", 1, "", "Unable to contact slurm controller"), Result((), "missing"),
    Result((), "timeout", None, "", "no answer within 5 s"), Result((), "ok", 0, "garbage")])
def test_slurmctld_is_away_and_comes_back(host: Host, capsys: pytest.CaptureFixture[str], result: Result) -> None:
    host.node.put(PORT, "1: DOWN\n")
    host.slurm.override[("scontrol",)] = lambda: result
    assert [host(capsys) for _run in range(3)] == [0, 2, 2]
    assert "could not be asked or told" in host.text and "scontrol -o show" in host.text
    host.slurm.override.clear()
    assert host(capsys) == 2 and host.reason.startswith("aidc:health: ports:")


def test_a_boot_forgets_the_counts_not_the_drain(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "aidc:health: ports: x")
    assert not (host.node.root / STATE.lstrip("/")).exists()
    assert host(capsys) == 0 and "not yet good for long enough" in host.text
    assert [host(capsys) for _run in range(2)] == [0, 0] and len(host.slurm.updates) == 1


def test_the_prolog_does_not_wait_for_a_second_run(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert host(capsys, PROLOG) == 0 and host.text == "" and host.node.calls == [] and host.slurm.calls == []
    host.node.put(PORT, "1: DOWN\n")
    assert host(capsys, PROLOG) == 1 and host.reason.startswith("aidc:health: ports:")


def test_a_port_that_comes_back_within_a_moment(host: Host, capsys: pytest.CaptureFixture[str],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    host.node.put(PORT, "1: DOWN\n")
    real = host.machine
    sleep = lambda seconds: host.node.put(PORT, "4: ACTIVE\n")  # noqa: E731
    monkeypatch.setattr(host, "machine", lambda: dataclasses.replace(real(), sleep=sleep))
    assert host(capsys, PROLOG) == 0 and not host.slurm.updates


def test_by_hand_nothing_changes(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.node.put(PORT, "1: DOWN\n")
    assert host(capsys, {}, "--json") == 2 and not host.slurm.calls
    assert json.loads(host.text)["failed"] == {"ports": "0000:03:00.0 (rail0, mlx5_0): RDMA port is 1: DOWN"}
    assert not (host.node.root / STATE.lstrip("/")).exists()


def test_without_a_verdict_nobody_is_drained(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.node.put(CONFIG, "{")
    assert host(capsys) == 3 and "got no JSON" in host.text
    # A job is not held back for our own file.
    assert host(capsys, PROLOG) == 0
    host.configure()
    (host.node.root / "etc/aidc/intent.json").unlink()
    assert [host(capsys) for _run in range(3)] == [0, 0, 0] and not host.slurm.updates


def test_a_read_that_never_ends_drains_in_time(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.configure(fail_after=1, time_limit_seconds=1)
    state = host.node.root / PORT.lstrip("/")
    state.unlink()
    os.mkfifo(state)
    start = time.monotonic()
    assert host(capsys) == 2 and time.monotonic() - start < 5
    assert host.reason == "aidc:health: ports: no answer within 1 s"


def test_two_at_once(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with cli._locked(host.machine()):
        assert host(capsys) == 3 and "health.json.lock: got held by" in host.text


def test_a_memory_that_cannot_be_kept(host: Host, capsys: pytest.CaptureFixture[str],
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: t.Any, **more: t.Any) -> None:
        raise OSError(28, "No space left on device")

    host.configure(fail_after=1)
    host.node.put(PORT, "1: DOWN\n")
    monkeypatch.setattr(cli.io, "write_atomic", full)
    assert host(capsys) == 2 and "No space left on device" in host.text and host.slurm.updates


def test_a_wrong_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["nonsense"])
    assert caught.value.code == 3


# -- as one file ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("health") / "aidc-health.pyz"
    path.write_bytes(boot_archive.build(CODE, boot_archive.HEALTH_START, boot_archive.HEALTH_PACKAGE))
    return path


def test_the_same_code_gives_the_same_bytes(archive: Path) -> None:
    assert boot_archive.build(CODE, boot_archive.HEALTH_START, boot_archive.HEALTH_PACKAGE) == archive.read_bytes()
    assert archive.stat().st_size < 600_000


def test_it_runs_from_one_file_as_slurmd_starts_it(archive: Path, host: Host) -> None:
    """No word, no PATH, one variable."""
    host.node.put(PORT, "1: DOWN\n")
    host.configure(fail_after=1)
    done = subprocess.run([sys.executable, "-I", str(archive), "--root", str(host.node.root)], cwd="/", env=SLURMD,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "ports: failed: 0000:03:00.0 (rail0, mlx5_0): RDMA port is 1: DOWN" in done.stdout
    assert json.loads(host.node.get(STATE))["checks"]["ports"]["failed"] is True
