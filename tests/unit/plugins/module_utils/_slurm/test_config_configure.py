# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import config_configure, config_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.model import HEADER

from tests.unit.plugins.fake import failed, ok

from . import fleet
from .fake_config import ETC, SlurmHost, Texts

SMALL = fleet.prod(l40s=16, epyc=16)
FILES: Texts = {name: text for name, text in fleet.render(SMALL).files.items() if name != "slurmdbd.conf"}
PENDING = "/run/aidc/slurm-config-controller.pending"
NOTE = "/var/lib/aidc/slurm-compute-restart"
RESTART, RECONFIGURE = ["systemctl", "restart", "slurmctld.service"], ["scontrol", "reconfigure"]


def changed(name: str, old: str, new: str) -> Texts:
    assert old in FILES[name]
    return {**FILES, name: FILES[name].replace(old, new)}


LIMIT = changed("slurm.conf", "Default=YES MaxTime=INFINITE", "Default=YES MaxTime=1-00:00:00")


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred small files on a busy disk take their time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def host(tmp_path: Path) -> SlurmHost:
    return SlurmHost(tmp_path)


@pytest.fixture
def done(host: SlurmHost) -> SlurmHost:
    host.call(FILES)
    host.node.calls.clear()
    return host


def test_check_mode_then_run_then_nothing(host: SlurmHost) -> None:
    predicted = host.call(FILES, check_mode=True)
    assert host.files() == {} and host.acts() == []
    real = host.call(FILES)
    for key in ("changed", "before", "after", "commands", "steps", "action", "why", "diff"):
        assert predicted[key] == real[key], key
    assert real["commands"] == [["write", PENDING], *(["write", f"{ETC}/{name}"] for name in FILES), RESTART,
                                ["write", NOTE], ["remove", PENDING]]
    assert real["action"] == "restart" and host.files() == FILES == host.running
    assert not (host.node.root / PENDING[1:]).exists() and not (host.node.root / "etc/slurm/.aidc-new").exists()
    again = host.call(FILES)
    assert (again["changed"], again["commands"], again["action"], again["why"]) == (False, [], "none", [])
    assert host.acts() == [tuple(RESTART)]


def test_nodes_are_told_what_their_slurmd_has_to_be_started_for(
        host: SlurmHost, monkeypatch: pytest.MonkeyPatch) -> None:
    first = host.call(FILES)["compute_restart_id"]
    assert first and host.node.get(NOTE) == first
    # A reconfigure reaches each slurmd by itself; a port does not.
    assert host.call(LIMIT)["compute_restart_id"] == first
    port = {**LIMIT, "slurm.conf": LIMIT["slurm.conf"] + "SlurmdPort=6900\n"}
    assert host.call(port, check_mode=True)["compute_restart_id"] not in ("", first)
    with monkeypatch.context() as patch:
        def killed(*_args: t.Any) -> None:
            raise KeyboardInterrupt
        patch.setattr(config_io, "note_restart", killed)
        with pytest.raises(KeyboardInterrupt):
            host.call(port)
    assert host.running == port and host.node.get(NOTE) == first
    second = host.call(port)
    assert second["compute_action"] == "restart" and host.node.get(NOTE) == second["compute_restart_id"] != first
    again = host.call(port)
    assert (again["changed"], again["compute_restart_id"]) == (False, second["compute_restart_id"])


def test_a_change_that_is_taken_back_tells_the_nodes_nothing(done: SlurmHost) -> None:
    before = done.node.get(NOTE)
    port = {**FILES, "slurm.conf": FILES["slurm.conf"] + "SlurmdPort=6900\n"}
    done.refuses = "SlurmdPort=6900"
    with pytest.raises(AidcError):
        done.call(port)
    assert done.node.get(NOTE) == before and done.call(FILES)["compute_restart_id"] == before


def test_a_partition_is_reconfigured_and_the_old_file_is_kept(done: SlurmHost) -> None:
    predicted = done.call(LIMIT, check_mode=True)
    real = done.call(LIMIT)
    assert predicted["commands"] == real["commands"] == [
        ["keep", f"{ETC}/aidc-old/controller/slurm.conf"], ["write", PENDING], ["write", f"{ETC}/slurm.conf"],
        RECONFIGURE, ["remove", PENDING]]
    assert (real["action"], real["compute_action"], real["why"]) == ("reconfigure", "none",
                                                                     ["partition train: reconfigure"])
    assert done.node.get(f"{ETC}/aidc-old/controller/slurm.conf") == FILES["slurm.conf"].strip()
    assert done.running == LIMIT and done.acts() == [tuple(RECONFIGURE)]


def test_comments_alone_need_nothing(done: SlurmHost) -> None:
    real = done.call({**FILES, "slurm.conf": FILES["slurm.conf"] + "# a word\n"})
    assert real["changed"] is True and real["action"] == "none" and done.acts() == []
    assert not (done.node.root / PENDING[1:]).exists()


def test_files_first_and_the_daemon_later(done: SlurmHost) -> None:
    first = done.call(LIMIT, state="installed")
    assert first["action"] == "reconfigure" and done.acts() == [] and done.running == FILES
    again = done.call(LIMIT, state="installed")
    assert (again["changed"], again["action"], again["why"]) == (False, "reconfigure", ["partition train: reconfigure"])
    last = done.call(LIMIT)
    assert last["commands"] == [RECONFIGURE, ["remove", PENDING]] and done.running == LIMIT
    assert done.call(LIMIT)["changed"] is False


def test_a_daemon_that_does_not_run_is_started(done: SlurmHost) -> None:
    done.running = None
    real = done.call(FILES)
    assert real["commands"] == [RESTART] and real["why"] == ["it is inactive"] and done.running == FILES
    # Also if a reconfigure would have been enough.
    done.running = None
    assert done.call(LIMIT)["commands"][-2:] == [RESTART, ["remove", PENDING]]


def test_an_old_topology_is_removed(done: SlurmHost) -> None:
    flat = {name: text for name, text in FILES.items() if name != "topology.conf"}
    real = done.call(flat, absent=["topology.conf", "topology.yaml"])
    assert real["commands"][-3:] == [["remove", f"{ETC}/topology.conf"], RECONFIGURE, ["remove", PENDING]]
    assert done.files() == flat


# -- going back -------------------------------------------------------------------------------------------


def test_a_daemon_that_does_not_start_goes_back(done: SlurmHost) -> None:
    bad = changed("slurm.conf", "AuthType=auth/munge", "AuthType=auth/none")
    done.refuses = "auth/none"
    with pytest.raises(AidcError) as caught:
        done.call({**bad, "cgroup.conf": FILES["cgroup.conf"] + "ConstrainSwapSpace=yes\n"})
    message = caught.value.message()
    assert "slurmctld: fatal: it does not like auth/none" in message
    assert "the old files are back, and it runs with them" in message
    assert done.files() == FILES == done.running and done.acts() == [tuple(RESTART)] * 2
    assert not (done.node.root / PENDING[1:]).exists()
    assert done.call(FILES)["changed"] is False


def test_a_first_start_that_fails_leaves_no_file(host: SlurmHost) -> None:
    host.refuses = "ClusterName=prod"
    with pytest.raises(AidcError, match="fatal: it does not like ClusterName=prod"):
        host.call(FILES)
    assert host.files() == {} and ("systemctl", "stop", "slurmctld.service") in host.node.calls
    host.refuses = "\0"
    assert host.call(FILES)["changed"] is True and host.running == FILES


def test_a_daemon_that_cannot_start_with_files_as_they_are_has_no_older_ones_put_back(done: SlurmHost) -> None:
    """munge, the database or the disk: what a run before has kept has nothing to do with it."""
    done.call(LIMIT)
    done.running, done.refuses = None, "ClusterName=prod"
    with pytest.raises(AidcError, match="fatal: it does not like ClusterName=prod"):
        done.call(LIMIT)
    assert done.files() == LIMIT
    done.refuses = "\0"
    assert done.call(LIMIT)["changed"] is True and done.running == LIMIT


@pytest.mark.parametrize("files", [
    changed("slurm.conf", "ReturnToService=1", "ReturnToService=2"),
    changed("slurm.conf", "SlurmctldTimeout=120", "SlurmctldTimeout=300"),
])
def test_a_reconfigure_that_was_not_taken_goes_back(done: SlurmHost, files: Texts) -> None:
    done.is_deaf = True
    with pytest.raises(AidcError, match="it kept its old configuration"):
        done.call(files)
    assert done.files() == FILES


def test_nodes_that_did_not_come_are_seen(done: SlurmHost) -> None:
    done.is_deaf = True
    files = {name: text for name, text in fleet.render(fleet.prod(l40s=17, epyc=16)).files.items()
             if name != "slurmdbd.conf"}
    with pytest.raises(AidcError, match=r"sinfo: got no l40s-17, wanted all nodes of the partitions"):
        done.call(files)
    assert done.files() == FILES


def test_also_when_the_files_came_in_a_call_before(done: SlurmHost) -> None:
    done.call(changed("slurm.conf", "ReturnToService=1", "ReturnToService=2"), state="installed")
    done.is_deaf = True
    with pytest.raises(AidcError, match="slurmctld's returntoservice: got 1, wanted 2"):
        done.call(changed("slurm.conf", "ReturnToService=1", "ReturnToService=2"))
    assert done.files() == FILES


def test_a_reconfigure_that_hangs(done: SlurmHost) -> None:
    hung = Result((), "timeout", None, "", "no answer within 60 s")
    done.node.override[("scontrol", "reconfigure")] = lambda call: hung
    with pytest.raises(AidcError, match="scontrol reconfigure: got no answer within 60 s"):
        done.call(LIMIT)
    assert done.files() == FILES


# -- nothing is replaced ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("files", "options", "text"), [
    (changed("slurm.conf", "AuthType=", "AuthTyp="), {}, "Parsing error at unrecognized key: AuthTyp"),
    (changed("gres.conf", "Cores=0-71", "Cores=0-710"), {}, "got Cores=0-710 for gb1"),
    ({"slurm.conf": "ClusterName=x\n"}, {}, "got a text without our header"),
    ({"../x.conf": "x"}, {}, "files: got ../x.conf, wanted names of Slurm's files"),
    (FILES, {"absent": ["slurm.conf"]}, "got slurm.conf in files and in absent"),
    (FILES, {"user": "nobody-here", "role": "dbd", "files": {"slurmdbd.conf": "# Written by aidc.gpu_cluster\nA=1\n"}},
     "user nobody-here: got nobody of this name"),
    ({**FILES, "slurm.conf": FILES["slurm.conf"] + "Include nosuch.conf\n"}, {},
     "slurm.conf: Include nosuch.conf: got no such file"),
    ({**FILES, "slurm.conf": FILES["slurm.conf"] + "Include /etc/slurm/x.conf\n"}, {}, "got no such file"),
])
def test_what_is_refused_before_a_change(done: SlurmHost, files: Texts, options: dict[str, t.Any], text: str) -> None:
    for check_mode in (True, False):
        with pytest.raises(AidcError, match=text) as caught:
            done.call(**{"files": files, "check_mode": check_mode, **options})
        assert "Nothing was changed." in caught.value.message()
    assert done.files() == FILES and done.acts() == []


def test_a_file_of_somebody_else_is_not_replaced(host: SlurmHost) -> None:
    host.node.put(f"{ETC}/slurm.conf", "ClusterName=theirs\n")
    with pytest.raises(AidcError, match="a file that is not ours"):
        host.call(FILES)
    assert host.files() == {"slurm.conf": "ClusterName=theirs\n"}
    host.call(FILES, take_over=True)
    assert host.files() == FILES and host.node.get(f"{ETC}/aidc-old/controller/slurm.conf") == "ClusterName=theirs"


@pytest.mark.parametrize("load", ["not-found", "masked"])
def test_a_unit_that_cannot_be_started(host: SlurmHost, load: str) -> None:
    host.load = load
    with pytest.raises(AidcError, match=f"slurmctld.service: got {load}, wanted a unit that can be started"):
        host.call(FILES)
    assert host.files() == {}
    # Files alone may come before.
    assert host.call(FILES, state="installed")["changed"] is True


@pytest.mark.parametrize(("answer", "text"), [
    (Result((), "missing"), "slurmctld -V: got the program is not installed, wanted the version of Slurm "
                            r"\(the package slurmctld has it\)"),
    (Result((), "ok", 0, "<html>"), "slurmctld -V: got '<html>' is not a version"),
    (failed(1, "boom"), "exit status 1: boom"),
])
def test_a_program_that_is_not_there(host: SlurmHost, answer: Result, text: str) -> None:
    host.node.override[("slurmctld", "-V")] = lambda call: answer
    with pytest.raises(AidcError, match=text):
        host.call(FILES)


def test_no_systemd(host: SlurmHost) -> None:
    host.node.override[("systemctl", "show")] = lambda call: Result(call, "missing")
    with pytest.raises(AidcError, match="Slurm's daemons are systemd units here"):
        host.call(FILES)


def test_a_full_disk_changes_nothing(done: SlurmHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: t.Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(config_io, "_put", full)
    with pytest.raises(AidcError, match="No space left on device, wanted room for the new files") as caught:
        done.call(LIMIT)
    assert "Nothing was changed." in caught.value.message()
    assert done.files() == FILES and done.acts() == []


# -- killed -----------------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


STEPS = ("forget", "keep", "mark", "move_in", "clean")


@pytest.mark.parametrize("where", STEPS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_a_run_that_is_killed_is_completed(done: SlurmHost, monkeypatch: pytest.MonkeyPatch, where: str, after: bool,
                                           times: int) -> None:
    """Before or after each step on the disk, the first time or the second: the next run ends as if nothing had been."""
    files = {**LIMIT, "cgroup.conf": FILES["cgroup.conf"] + "ConstrainSwapSpace=yes\n"}
    real, calls = getattr(config_io, where), []

    def dies(*arguments: t.Any) -> None:
        calls.append(1)
        if len(calls) < times:
            real(*arguments)
            return
        if after:
            real(*arguments)
        raise Killed

    monkeypatch.setattr(config_io, where, dies)
    try:
        done.call(files)
    except Killed:
        pass
    else:
        assert times == 2 and where not in ("keep", "move_in")
    monkeypatch.setattr(config_io, where, real)
    done.call(files)
    assert done.files() == files == done.running
    assert done.call(files)["changed"] is False


@pytest.mark.parametrize("where", ["move_in", "clean"])
def test_a_killed_run_can_still_go_back(done: SlurmHost, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    files = {**changed("slurm.conf", "AuthType=auth/munge", "AuthType=auth/none"),
             "cgroup.conf": FILES["cgroup.conf"] + "ConstrainSwapSpace=yes\n", "aidc-x.conf": f"{HEADER}\n"}
    real = getattr(config_io, where)

    def dies(*arguments: t.Any) -> None:
        real(*arguments)
        raise Killed

    monkeypatch.setattr(config_io, where, dies)
    with pytest.raises(Killed):
        done.call(files)
    monkeypatch.setattr(config_io, where, real)
    done.refuses = "auth/none"
    with pytest.raises(AidcError, match="the old files are back, and it runs with them"):
        done.call(files)
    assert done.files() == FILES == done.running


def test_killed_before_the_daemon_was_told(done: SlurmHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*arguments: t.Any) -> t.Any:
        raise Killed

    real = config_configure._act
    monkeypatch.setattr(config_configure, "_act", dies)
    with pytest.raises(Killed):
        done.call(LIMIT)
    monkeypatch.setattr(config_configure, "_act", real)
    assert done.files() == LIMIT and done.running == FILES
    assert json.loads(done.node.get(PENDING))["action"] == "reconfigure"
    assert done.call(LIMIT)["commands"] == [RECONFIGURE, ["remove", PENDING]]
    assert done.running == LIMIT


@pytest.mark.parametrize("text", ["", "{", "[]", '{"action": "dance", "compute_action": "none", "why": [], "new": []}'])
def test_a_marker_that_cannot_be_read_restarts(done: SlurmHost, text: str) -> None:
    done.node.put(PENDING, text)
    assert done.call(FILES)["commands"] == [RESTART, ["remove", PENDING]]


# -- other roles ------------------------------------------------------------------------------------------


def test_slurmdbd(host: SlurmHost) -> None:
    files = {"slurmdbd.conf": fleet.render(SMALL).files["slurmdbd.conf"]}
    real = host.call(files, role="dbd")
    assert real["commands"][-2] == ["systemctl", "restart", "slurmdbd.service"]
    assert (host.node.root / "etc/slurm/slurmdbd.conf").stat().st_mode & 0o777 == 0o600
    assert host.call(files, role="dbd")["changed"] is False
    (host.node.root / "etc/slurm/slurmdbd.conf").chmod(0o644)
    mode = host.call(files, role="dbd")
    assert mode["steps"][2]["why"] == "it is root's with mode 0644" and mode["action"] == "none"


def test_two_roles_of_one_host_do_not_mix(done: SlurmHost) -> None:
    done.call(LIMIT, state="installed")
    done.call({"slurmdbd.conf": fleet.render(SMALL).files["slurmdbd.conf"]}, role="dbd")
    assert done.call(LIMIT)["commands"] == [RECONFIGURE, ["remove", PENDING]]


def test_a_compute_node_with_files_of_its_own(tmp_path: Path) -> None:
    host = SlurmHost(tmp_path)
    host.call(FILES, role="compute")
    # slurmctld's reconfigure reaches it.
    assert host.call(LIMIT, role="compute")["action"] == "none"
    other = changed("slurm.conf", "SwitchType=switch/nvidia_imex\n", "")
    assert host.call(other, role="compute")["action"] == "restart"
    host.version = "22.05.8"
    assert host.call(FILES, role="compute")["action"] == "restart"


def test_a_login_node_has_only_files(host: SlurmHost) -> None:
    real = host.call(FILES, role="login")
    assert real["action"] == "none" and host.acts() == [] and host.files() == FILES
    assert host.call(FILES, role="login")["changed"] is False
    host.call(LIMIT, role="login", state="installed")
    assert not list((host.node.root / "run/aidc").glob("*.pending"))


def test_files_of_another_form_beside_ours(host: SlurmHost) -> None:
    host.node.put(f"{ETC}/plugstack.conf", "include /etc/slurm/plugstack.conf.d/*.conf\nrequired x.so\n")
    assert host.call(FILES)["changed"] is True


def test_the_answer_of_the_other_controller_is_not_ours(done: SlurmHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd says active, and slurmctld does not answer; its backup does."""
    done.node.override[("scontrol", "ping")] = lambda call: ok(
        "Slurmctld(primary) at ctl1 is DOWN\nSlurmctld(backup) at ctl2 is UP\n")
    with pytest.raises(AidcError, match="slurmctld.service: got no answer within 60 s"):
        done.call(changed("slurm.conf", "SwitchType=switch/nvidia_imex\n", ""))


def test_a_site_that_includes_our_files(host: SlurmHost) -> None:
    """Their slurm.conf is read with ours, and stays."""
    theirs = "ClusterName=theirs\nInclude aidc-nodes.conf\nInclude aidc-partitions.conf\n"
    host.node.put(f"{ETC}/slurm.conf", theirs)
    host.node.put(f"{ETC}/gres.conf", "Include /etc/slurm/aidc-gres.conf\n")
    files = fleet.render(SMALL, ownership="include").files
    host.call(files)
    assert host.files() == {**files, "slurm.conf": theirs, "gres.conf": "Include /etc/slurm/aidc-gres.conf\n"}
    host.node.put(f"{ETC}/slurm.conf", theirs + "AuthTyp=theirs\n")
    more = fleet.render(fleet.prod(l40s=17, epyc=16), ownership="include").files
    with pytest.raises(AidcError, match="unrecognized key: AuthTyp"):
        host.call(more)


def test_a_site_that_does_not_include_them_yet(host: SlurmHost) -> None:
    """They can be included only once they are there: so they stay, no daemon is touched, and the lines are named."""
    host.node.put(f"{ETC}/slurm.conf", "ClusterName=theirs\n# Include aidc-nodes.conf\nInclude aidc-partitions.conf\n")
    files = fleet.render(SMALL, ownership="include").files
    host.call(files, state="installed")
    calls = len(host.node.calls)
    with pytest.raises(AidcError) as error:
        host.call(files)
    assert "slurm.conf: got a file of the site without Include aidc-nodes.conf, wanted" in str(error.value)
    assert "gres.conf: got a file of the site without Include aidc-gres.conf" in str(error.value)
    assert {name: text for name, text in host.files().items() if name in files} == files
    assert not [call for call in host.node.calls[calls:] if call[0] == "systemctl" and "restart" in call]
