# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role as a play runs it over emulated trays: the module's code on each of them, the real plan of all."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import NODES_FILE

from tests.unit.plugins.holders import slurm_step
from tests.unit.plugins.imex_node import CHANNEL, OLD, ImexNode, nodes, rack, settled, tray

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "imex_domain"
# Each play costs seconds; what the library's tests have as well is played in the long run only.
SLOW = pytest.mark.slow
# In place of the module: its code, on the tray below the variable `root`. One that is down is not reached.
STUB = """import json
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from tests.unit.plugins.imex_node import ImexNode


class ActionModule(ActionBase):
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        node = ImexNode(Path(str(task_vars["root"])))
        args = json.loads(json.dumps(dict(self._task.args), default=str))
        state, check = args.get("state", "started"), bool(self._task.check_mode)
        with open(node.root.parent / "order", "a") as stream:
            stream.write(f"{node.root.name} {state}{' ?' if check else ''}\\n")
        if node.data().get("down") in (True, state) and not (check and node.data()["down"] is not True):
            raise AnsibleConnectionFailure(f"{node.root.name} is down")
        try:
            return node.call(check, **{**args, "wait_seconds": min(args.get("wait_seconds", 4), 4)})
        except AidcError as error:
            return {**error.as_result(), "failed": True}
"""
PLAY: dict[str, t.Any] = {"hosts": "all", "gather_facts": False, "roles": ["aidc.gpu_cluster.imex_domain"]}


class Site:
    """Trays below one folder, and a play over them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.trays, self.vars = folder, folder / "trays", dict[str, dict[str, t.Any]]()
        target = folder / "collections" / "ansible_collections" / "aidc" / "gpu_cluster"
        (target / "plugins" / "action").mkdir(parents=True)
        (target / "plugins" / "action" / "imex_domain.py").write_text(STUB, encoding="utf-8")
        for name in ("plugins/action/imex_plan.py", "plugins/module_utils", "plugins/plugin_utils", "roles",
                     "galaxy.yml", "meta"):
            (target / name).symlink_to(ROOT / name)

    def play(self, *arguments: str, serial: int = 0, **variables: t.Any) -> tuple[int, str]:
        hosts = {path.parent.name: {
            "ansible_host": ImexNode(path.parent).data()["addresses"][0], "nvlink_domain": "nvl1",
            "root": str(path.parent), **self.vars.get(path.parent.name, {})}
            for path in sorted(self.trays.glob("*/imex.json"))}
        common = {"ansible_connection": "local", "ansible_become": False, **variables,
                  "ansible_python_interpreter": sys.executable}
        (self.folder / "order").unlink(missing_ok=True)
        (self.trays / "order").unlink(missing_ok=True)
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(
            {"all": {"hosts": hosts, "vars": common}}, sort_keys=False), encoding="utf-8")
        play = {**PLAY, "serial": serial} if serial else PLAY
        (self.folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
        done = subprocess.run(
            [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(self.folder / "hosts.yml"),
             str(self.folder / "play.yml"), *arguments],
            cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                 "ANSIBLE_FORKS": "2", "PYTHONPATH": str(ROOT),
                 "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections")})
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def order(self) -> list[str]:
        """What the module was asked for; a question mark is check mode. Of one task the hosts have no order."""
        path = self.trays / "order"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def lists(self) -> list[list[str]]:
        """What each daemon runs with."""
        return [(ImexNode(path.parent).data()["list"] or "").split() for path in sorted(self.trays.glob("*/imex.json"))]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_every_variable_that_tasks_use_is_defined() -> None:
    known: set[str] = set()
    for name in ("defaults/main.yml", "vars/main.yml"):
        known |= set(yaml.safe_load((ROLE / name).read_text(encoding="utf-8")))
    text = "".join(path.read_text(encoding="utf-8") for path in [*ROLE.glob("tasks/*.yml"), ROLE / "vars/main.yml"])
    known |= set(re.findall(r"register: (\w+)", text)) | {"imex_domain_result", "__imex_domain_applies"}
    used = set(re.findall(r"\b(?:__)?imex_domain_[a-z]\w*", text))
    assert used - known - {f"imex_domain_{phase}" for phase in ("preflight", "install", "configure", "verify")} == set()


def test_a_new_domain_and_nothing_to_do_after_it(site: Site) -> None:
    trays = rack(site.trays)
    code, said = site.play("--check")
    assert code == 0 and site.lists() == [[], [], []], said
    code, said = site.play()
    assert code == 0, said
    assert site.lists() == [nodes(trays)] * 3
    code, said = site.play()
    assert code == 0 and said.count("changed=0") == 3, said
    assert sorted(site.order()) == [f"g{number} {what}" for number in (1, 2, 3) for what in ("ready", "started ?")], \
        "two calls a host where nothing is to do"


@SLOW
def test_modes(site: Site) -> None:
    settled(site.trays)
    for arguments in (["-e", "imex_domain_mode=verify"], ["--check", "-e", "imex_domain_mode=verify"], ["--check"]):
        code, said = site.play(*arguments)
        assert code == 0 and said.count("changed=0") == 3, said
        assert sorted({line.split(" ", 1)[1] for line in site.order()}) == ["ready", "started ?"], "it is proven, too"
    assert site.play("-e", "imex_domain_mode=off")[0] == 0 and site.order() == []
    # A mode of one host says nothing of the others, also where it is the first one.
    site.vars = {"g1": {"imex_domain_mode": False}}
    assert site.play()[0] == 0
    assert sorted(site.order()) == ["g2 ready", "g2 started ?", "g3 ready", "g3 started ?"]


@SLOW
@pytest.mark.parametrize("phase", ["preflight", "install", "configure", "verify"])
def test_each_phase_by_its_tag(site: Site, phase: str) -> None:
    trays = settled(site.trays, 2)
    code, said = site.play("--tags", f"imex_domain_{phase}")
    assert code == 0 and said.count("changed=0") == 2, said
    asked = {"preflight": [], "verify": ["ready", "started ?"]}.get(phase, ["started ?"])
    assert sorted(set(line.split(" ", 1)[1] for line in site.order())) == asked
    trays[1].change(active="inactive", list=None)
    code, said = site.play("--tags", f"imex_domain_{phase}")
    assert code == (2 if phase == "verify" else 0), said
    assert bool(trays[1].data()["list"]) is (phase == "configure")


@SLOW
def test_a_tray_that_was_rebooted(site: Site) -> None:
    trays = settled(site.trays)
    trays[1].reboot()
    code, said = site.play()
    assert code == 0 and said.count("changed=0") == 3 and site.lists() == [nodes(trays)] * 3, said


def test_a_new_tray_stops_all_writes_all_starts_all(site: Site) -> None:
    trays = [*settled(site.trays, 2), tray(site.trays, 3)]
    code, said = site.play("--check")
    assert code == 0 and said.count("changed=0") == 0 and site.lists() == [nodes(trays[:2])] * 2 + [[]], said
    code, said = site.play()
    assert code == 0, said
    assert site.lists() == [nodes(trays)] * 3
    steps = [line.split()[1] for line in site.order() if not line.endswith("?")]
    assert steps == ["stopped"] * 3 + ["configured"] * 3 + ["started"] * 3 + ["ready"] * 3
    assert site.play()[1].count("changed=0") == 3


def test_a_host_that_is_not_in_the_run_never_shortens_the_list(site: Site) -> None:
    trays = settled(site.trays)
    code, said = site.play("--limit", "g1,g2")
    assert code == 0 and said.count("changed=0") == 2, said
    assert site.lists() == [nodes(trays)] * 3
    # One that has stopped is started with the list of all three.
    trays[0].change(active="inactive", list=None)
    code, said = site.play("--limit", "g1")
    assert code == 0, said
    assert site.lists() == [nodes(trays)] * 3


@pytest.mark.parametrize(("arguments", "serial", "down"), [
    (["--limit", "g1,g3"], 0, []), pytest.param([], 0, ["g2"], marks=SLOW), pytest.param([], 2, [], marks=SLOW)])
def test_a_new_list_waits_for_all_hosts(site: Site, arguments: list[str], serial: int, down: list[str]) -> None:
    trays = [*settled(site.trays, 2), tray(site.trays, 3)]
    for one in trays:
        one.change(down=one.root.name in down)
    code, said = site.play(*arguments, serial=serial)
    assert (code == 0) is not bool(down), said
    assert "of nvlink_domain nvl1: not in this run (or only verified), not reachable, or failed in it" in said
    assert site.lists() == [nodes(trays[:2])] * 2 + [[]]
    assert not any(line.endswith(("stopped", "configured")) for line in site.order())
    assert not (trays[2].root / NODES_FILE.lstrip("/")).exists()
    code, said = site.play(*arguments, "-e", "imex_domain_mode=verify", serial=serial)
    assert code != 0 and "has to be stopped before it is started again" in said


def test_a_job_on_one_host_keeps_all_of_them(site: Site) -> None:
    trays = [*settled(site.trays, 2), tray(site.trays, 3)]
    slurm_step(trays[1].root, 4711, "python3", CHANNEL)
    code, said = site.play()
    assert code == 0 and said.count("changed=0") == 3, said
    assert f"g2: Slurm job 4242 step 0 (pid 4711 python3) has {CHANNEL} open" in said
    assert site.lists() == [nodes(trays[:2])] * 2 + [[]]
    # A list that is as wanted disturbs no job.
    trays[1].reboot()
    assert site.play()[0] == 0 and site.lists() == [nodes(trays)] * 3
    slurm_step(trays[1].root, 4712, "python3", CHANNEL)
    assert site.play()[1].count("changed=0") == 3


def test_a_host_that_is_lost_while_all_are_stopped(site: Site) -> None:
    """The others have stopped by then, and run with their old list afterwards; no new file was written."""
    trays = [*settled(site.trays, 2), tray(site.trays, 3)]
    trays[0].change(down="stopped")
    code, said = site.play()
    assert code != 0 and "not all of its hosts have stopped IMEX" in said and "g1 did not stop" in said, said
    assert site.lists() == [nodes(trays[:2])] * 2 + [[]]
    assert trays[1].get(NODES_FILE).split() == nodes(trays[:2])
    trays[0].change(down=False)
    assert site.play()[0] == 0 and site.lists() == [nodes(trays)] * 3


@SLOW
def test_a_host_that_is_lost_before_it_has_the_file(site: Site) -> None:
    """The others go on with the new list; the next run makes it good."""
    trays = [*settled(site.trays, 2), tray(site.trays, 3)]
    trays[1].change(down="configured")
    code, _said = site.play()
    assert code != 0 and site.lists() == [nodes(trays), [], nodes(trays)]
    trays[1].change(down=False)
    code, said = site.play()
    assert code == 0 and site.lists() == [nodes(trays)] * 3, said
    assert not any(line.endswith("stopped") for line in site.order()), "nobody is stopped for it"


@SLOW
def test_a_list_that_differs_on_one_host(site: Site) -> None:
    trays = settled(site.trays)
    trays[2].put(NODES_FILE, "192.0.2.1\n192.0.2.3\n")
    trays[2].reboot()
    code, said = site.play("-e", "imex_domain_mode=verify")
    assert code != 0 and "is another list" in said
    assert site.play()[0] == 0 and site.lists() == [nodes(trays)] * 3


def test_daemons_that_stay_blocked(site: Site) -> None:
    """Files and starts are right, and one is blocked all the same: only an operator's word restarts the domain."""
    trays = settled(site.trays)
    trays[2].change(list="192.0.2.3\n")
    code, said = site.play()
    assert code != 0 and "node map mismatch" in said and "imex_domain_restart" in said, said
    code, said = site.play("-e", "imex_domain_restart=true")
    assert code == 0 and site.lists() == [nodes(trays)] * 3, said
    assert sorted(line for line in site.order() if line.endswith("stopped")) == [f"g{n} stopped" for n in (1, 2, 3)]


@SLOW
def test_a_host_that_is_only_verified_is_not_changed_by_the_others(site: Site) -> None:
    trays = [*settled(site.trays, 2), tray(site.trays, 3)]
    site.vars = {"g2": {"imex_domain_mode": "verify"}}
    code, said = site.play()
    assert code != 0 and "g2 of nvlink_domain nvl1: not in this run (or only verified)" in said, said
    assert site.lists() == [nodes(trays[:2])] * 2 + [[]]


def test_domains_do_not_wait_for_each_other(site: Site) -> None:
    trays = [*settled(site.trays, 2), tray(site.trays, 3), tray(site.trays, 4)]
    site.vars = {"g1": {"nvlink_domain": ""}, "g2": {"nvlink_domain": "a"}, "g3": {"nvlink_domain": "b"},
                 "g4": {"nvlink_domain": "b"}}
    slurm_step(trays[1].root, 4711, "python3", CHANNEL)
    code, said = site.play()
    assert code == 0 and "g2: Slurm job 4242" in said, said
    assert site.lists() == [nodes(trays[:2])] * 2 + [nodes(trays[2:])] * 2
    assert not any(line.startswith("g1 ") for line in site.order()), "it has no domain, and the first place in the play"


def test_a_part_of_the_domain_was_given_to_kubernetes(site: Site) -> None:
    settled(site.trays)
    site.vars = {"g2": {"imex_domain_owner": "dra"}}
    code, said = site.play()
    assert code != 0 and site.order() == []
    assert "imex_domain_owner: got host on g1, g3; dra on g2; wanted one owner for all its hosts" in said
    code, said = site.play("-e", "imex_domain_owner=dra")
    assert code == 0 and site.lists() == [[], [], []], said
    assert [one.data()["enabled"] for one in (ImexNode(site.trays / f"g{n}") for n in (1, 2, 3))] == ["masked"] * 3
    assert site.play("-e", "imex_domain_owner=dra")[1].count("changed=0") == 3


@SLOW
@pytest.mark.parametrize(("values", "message"), [
    ({"ansible_host": "tray-1"}, "g1: imex_domain_address: got 'tray-1', wanted the IP address"),
    ({"imex_domain_address": "192.0.2.2"}, "g1, g2: imex_domain_address: got 192.0.2.2 for each"),
    ({"node_class_nvlink_domain_trays": 0}, "g1: nvlink_domain: got nvl1, wanted none"),
    ({"node_class_nvlink_domain_trays": 2}, "nvlink_domain nvl1: got 3 hosts, wanted at most 2")])
def test_an_inventory_that_is_wrong(site: Site, values: dict[str, t.Any], message: str) -> None:
    rack(site.trays)
    site.vars = {"g1": values}
    code, said = site.play()
    assert code != 0 and message in said and site.order() == [], said


@SLOW
def test_an_address_that_is_a_template(site: Site) -> None:
    trays = rack(site.trays, 2)
    site.vars = {f"g{number}": {"ansible_host": f"tray-{number}", "own_number": number} for number in (1, 2)}
    code, said = site.play(imex_domain_address="192.0.2.{{ own_number }}")
    assert code == 0 and site.lists() == [nodes(trays)] * 2, said


@SLOW
def test_the_package_is_another_one(site: Site) -> None:
    """It fails where it is; the others do not go on without it."""
    trays = rack(site.trays)
    trays[1].change(package=OLD)
    code, said = site.play()
    assert code != 0 and f"package nvidia-imex: got {OLD}, wanted 580.126.09, as the driver that is loaded" in said
    assert site.lists() == [[], [], []]


@SLOW
def test_check_mode_before_the_driver_is_there(site: Site) -> None:
    for one in rack(site.trays):
        one.change(package="")
    code, said = site.play("--check")
    assert code == 0 and "unpredictable until role nvidia_driver" in said, said
    assert site.play()[0] != 0


@SLOW
def test_a_tray_that_is_down_fails_the_proof(site: Site) -> None:
    trays = settled(site.trays)
    trays[2].change(active="inactive", list=None, down=True)
    code, said = site.play("--limit", "g1,g2")
    assert code != 0 and "nvlink_domain nvl1: node 192.0.2.3 / UNAVAILABLE / READY" in said, said


@SLOW
def test_a_domain_of_the_dra_driver_needs_no_addresses(site: Site) -> None:
    trays = settled(site.trays, 2)
    site.vars = {one.root.name: {"ansible_host": one.root.name, "imex_domain_owner": "dra"} for one in trays}
    code, said = site.play()
    assert code == 0 and [one.data()["enabled"] for one in trays] == ["masked", "masked"], said


@SLOW
def test_one_host_alone(site: Site) -> None:
    rack(site.trays, 1)
    code, said = site.play()
    assert code == 0 and "nvlink_domain nvl1 has one host: NVLink between hosts is not tested" in said, said
