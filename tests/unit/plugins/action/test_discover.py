# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.discover import ActionModule, load_classes

from tests.unit.plugins.module_utils._discover.case import FOLDER, Results, l40s, tray


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> t.Callable[..., t.Any]:
    def call(*hosts: Results, check_mode: bool = False, **options: t.Any) -> t.Any:
        action: t.Any = object.__new__(ActionModule)
        action._task = SimpleNamespace(check_mode=check_mode)
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        args = {"hosts": [one.name for one in hosts], "host_info": "h", "mlx5_info": "m", "classes_dir": str(FOLDER),
                "directory": str(tmp_path / "out"), "force": False, **options}
        action.validate_argument_spec = lambda spec: (None, args)
        hostvars = {one.name: {"h": one.info, "m": one.mlx5, "ansible_host": "192.0.2.1", "ansible_port": 22}
                    for one in hosts}
        return action.run(task_vars={"hostvars": hostvars})

    return call


def test_an_inventory_is_written_that_ansible_reads(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run(tray(), l40s())
    assert result["changed"] is True and result["refused"] == [] and len(result["files"]) == 6
    data = yaml.safe_load((tmp_path / "out/hosts.yml").read_text(encoding="utf-8"))["all"]
    assert data["vars"] == {"ansible_host": "192.0.2.1", "ansible_port": 22}
    assert data["children"]["gb200"]["hosts"] == {"g1": {"nvlink_domain": "nvl1", "rail_network_node_index": 1}}
    assert set(data["children"]) == {"gb200", "l40s", "leaf1", "leaf2"}
    for name in ("gb200", "l40s"):
        folder = tmp_path / "out/group_vars" / name
        copied = yaml.safe_load((folder / "00-class.yml").read_text(encoding="utf-8"))
        assert copied["node_class_name"] == name
        assert [rail["pci"] for rail in yaml.safe_load((folder / "10-site.yml").read_text())["mlx5_port_rails"]]


def test_a_second_run_changes_nothing(run: t.Callable[..., t.Any]) -> None:
    run(tray())
    assert run(tray())["changed"] is False


def test_what_is_there_is_not_written_over(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    run(tray())
    file = tmp_path / "out/hosts.yml"
    file.write_text("mine\n", encoding="utf-8")
    result = run(tray())
    assert (result["changed"], result["refused"]) == (False, [str(file)])
    assert file.read_text(encoding="utf-8") == "mine\n"
    assert result["table"] and result["differences_table"]
    assert run(tray(), force=True)["files"] == [str(file)]
    assert file.read_text(encoding="utf-8") != "mine\n"


def test_check_mode_writes_nothing(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run(tray(), check_mode=True)
    assert result["changed"] is True and not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match="aidc_discover_dir"):
        run(tray())


def test_hosts_with_nothing_registered(run: t.Callable[..., t.Any]) -> None:
    empty = tray("x")
    empty.info, empty.mlx5 = None, None  # type: ignore[assignment]
    assert [one["group"] for one in run(empty)["hosts"]] == ["unknown"]


@pytest.mark.parametrize(("files", "text"), [
    ({}, "got no class file"), ({"a.yml": "node_class_name: a", "b.yml": "node_class_name: a"}, "got a, a in"),
    ({"a.yml": "x: [\n"}, "a.yml"), ({"a.yml": "- 1\n"}, "a.yml: got list"),
    ({"a.yml": "node_class_name: 3\n"}, "node_class_name: got 3")])
def test_class_files_that_are_none(tmp_path: Path, files: dict[str, str], text: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(AnsibleActionFail) as caught:
        load_classes(tmp_path)
    assert text in str(caught.value)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(AnsibleActionFail, match="aidc_discover_classes_dir"):
        load_classes(tmp_path / "gone")
