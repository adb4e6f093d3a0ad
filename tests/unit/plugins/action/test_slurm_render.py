# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.slurm_render import ActionModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import record as records
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import slurm_inventory

from tests.unit.plugins.module_utils._slurm import fleet

PROD = fleet.prod()


class HostVars(dict[str, t.Any]):
    """As the engine's: raw_get has templates as they stand in the files."""

    def __init__(self) -> None:
        super().__init__({host: dict(values) for host, values in PROD.hosts.items()})
        self.update({"ctl1": {"slurm_node_address": "192.0.2.1"}, "ctl2": {}})
        self.raw: dict[str, t.Any] = {}

    def raw_get(self, host: str) -> t.Any:
        return {**self[host], **self.raw.get(host, {})}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Records of all hosts, written plainly: the store syncs each of them to the disk."""
    (tmp_path / "host_info").mkdir()
    time = datetime.now(timezone.utc).strftime(records.TIME_FORMAT)
    for host, record in PROD.records.items():
        text = json.dumps(records.build("host_info", host, time, None, record))
        (tmp_path / "host_info" / f"{host}.json").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, state: Path) -> t.Callable[..., t.Any]:
    groups = {**PROD.groups, "slurm_compute": list(PROD.hosts), "slurm_controller": ["ctl1", "ctl2"],
              "slurm_dbd": ["ctl1"]}

    def call(hostvars: HostVars | None = None, args: t.Any = None, **variables: t.Any) -> t.Any:
        action: t.Any = object.__new__(ActionModule)
        action._task = SimpleNamespace(check_mode=False, args=args or {})
        action._templar = SimpleNamespace(template=lambda value: value)
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        known = {"hostvars": hostvars or HostVars(), "groups": groups, "aidc_state_dir": str(state),
                 "slurm_version": "24.11.5", "slurm_cluster_name": "prod"}
        return action.run(task_vars={**known, **variables})

    return call


def test_the_whole_cluster(run: t.Callable[..., t.Any]) -> None:
    result = run(args={"mem_spec_limit_mib": 8192, "health_program": "/usr/libexec/aidc/aidc-health.pyz",
                       "reboot_program": "/usr/sbin/reboot"})
    wanted = dict(fleet.render().files)
    for old, new in (("SlurmctldHost=ctl1\n", "SlurmctldHost=ctl1(192.0.2.1)\n"),
                     ("AccountingStorageHost=ctl1", "AccountingStorageHost=192.0.2.1")):
        wanted["slurm.conf"] = wanted["slurm.conf"].replace(old, new)
    wanted["slurmdbd.conf"] = wanted["slurmdbd.conf"].replace("DbdHost=ctl1\n", "DbdHost=ctl1\nDbdAddr=192.0.2.1\n")
    assert result["files"] == wanted
    assert (result["changed"], result["version"], result["findings"]) == (False, "24.11", [])
    assert result["topology"]["block_size"] == 16 and len(result["nodes"]) == 84


def test_a_task_wins_over_a_variable(run: t.Callable[..., t.Any]) -> None:
    assert "ClusterName=other\n" in run(args={"cluster_name": "other"})["files"]["slurm.conf"]
    # None is what a role gives for a variable that nobody has set.
    assert "ClusterName=prod\n" in run(args={"cluster_name": None}, slurm_block_size=None)["files"]["slurm.conf"]


def test_a_template_is_rendered(run: t.Callable[..., t.Any]) -> None:
    hostvars = HostVars()
    hostvars["gb1-01"]["slurm_node_address"] = "192.0.2.50"
    hostvars.raw["gb1-01"] = {"slurm_node_address": "{{ ansible_host }}"}
    assert "NodeName=gb1-01 NodeAddr=192.0.2.50 " in run(hostvars)["files"]["slurm.conf"]


def test_errors_fail_with_all_of_them_and_no_files(run: t.Callable[..., t.Any]) -> None:
    result = run(slurm_use_records=False, slurm_options={"NodeName": "x"}, slurm_topology="block", slurm_block_size=99)
    assert result["failed"] is True and result["files"] == {} and result["sha256"] == {} and result["absent"] == []
    for text in ("l40s-[01-16]: facts for NodeName: got no sockets", "slurm_options.NodeName: got a key that follows",
                 "nvlink_domain nvl1: got 18 nodes, wanted slurm_block_size (99) or more", ". Nothing was rendered."):
        assert text in result["msg"]
    assert len([finding for finding in result["findings"] if finding["severity"] == "error"]) > 3


class Group:
    def __init__(self, hosts: t.Sequence[str] = (), children: t.Sequence[t.Any] = ()) -> None:
        self.hosts, self.child_groups = list(hosts), list(children)


def test_the_order_is_that_of_the_inventory_and_not_the_engines() -> None:
    leaf1, leaf2 = Group(["g1", "g2"]), Group(["g3", "g2"])
    compute = Group(["x"], [Group(children=[leaf1, leaf2]), Group(["l1"])])
    hostvars = SimpleNamespace(_inventory=SimpleNamespace(groups={"slurm_compute": compute}))
    assert slurm_inventory.ordered(hostvars, {"slurm_compute": ["l1", "g1"]}, "slurm_compute") == [
        "x", "g1", "g2", "g3", "l1"]
    assert slurm_inventory.ordered(hostvars, {"slurm_dbd": ["a"]}, "slurm_dbd") == ["a"]
    assert slurm_inventory.ordered(hostvars, {}, "slurm_dbd") == []


@pytest.mark.parametrize(("args", "variables", "text"), [
    ({"colour": 1}, {}, "got the options colour, which it does not have"),
    ({"topology": "ring"}, {}, "topology must be one of"),
    ({}, {"slurm_partitions": 7}, "unable to convert"),
    ({}, {"slurm_leaf_groups": "["}, "leaf_groups: got '\\['"),
])
def test_bad_options(run: t.Callable[..., t.Any], args: t.Any, variables: t.Any, text: str) -> None:
    with pytest.raises(AnsibleActionFail, match=text):
        run(args=args, **variables)


def test_a_broken_record_is_named(run: t.Callable[..., t.Any], state: Path) -> None:
    (state / "host_info" / "gb1-01.json").write_text("{", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match=r"gb1-01.json: .*remove it and run again"):
        run()


def test_old_and_missing_records_are_findings(run: t.Callable[..., t.Any], state: Path) -> None:
    (state / "host_info" / "gb1-01.json").unlink()
    result = run(slurm_max_age_hours=-1)
    found = {finding["object"]: finding["got"] for finding in result["findings"]}
    assert found["gb1-01: fleet record"] == "none"
    assert found["gb1-[02-18],gb2-[01-18],l40s-[01-16],epyc-[01-32]: fleet record"] == "an old one"
    assert result["files"]
