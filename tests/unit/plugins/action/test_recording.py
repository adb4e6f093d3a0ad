# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins that run a module and keep its result in the fleet record."""
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.gpu_info import ActionModule as GpuInfo
from ansible_collections.aidc.gpu_cluster.plugins.action.host_info import ActionModule as HostInfo
from ansible_collections.aidc.gpu_cluster.plugins.action.mlx5_info import ActionModule as Mlx5Info
from ansible_collections.aidc.gpu_cluster.plugins.action.mlx5_port import ActionModule as Mlx5Port

MODULE_RESULT = {"changed": False, "devices": [{"pci": "0000:03:00.0"}], "problems": [], "invocation": {},
                 "_ansible_parsed": True}


@pytest.fixture(params=[GpuInfo, HostInfo, Mlx5Info], ids=["gpu_info", "host_info", "mlx5_info"])
def plugin(request: pytest.FixtureRequest) -> t.Any:
    return request.param


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, plugin: t.Any) -> t.Callable[..., t.Any]:
    def call(result: dict[str, t.Any] | None = None, **variables: t.Any) -> t.Any:
        action: t.Any = object.__new__(plugin)
        action._task = SimpleNamespace(args={"rails": []})
        action._templar = SimpleNamespace(template=lambda value: value)
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        asked: list[t.Any] = []

        def execute(**arguments: t.Any) -> dict[str, t.Any]:
            asked.append((arguments["module_name"], arguments["module_args"]))
            return dict(result or MODULE_RESULT)

        action._execute_module = execute
        found = action.run(task_vars={"inventory_hostname": "h1", **variables})
        assert asked == [(f"aidc.gpu_cluster.{plugin.module or plugin.kind}", {"rails": []})]
        return found

    return call


def test_the_result_is_stored(run: t.Callable[..., t.Any], plugin: t.Any, tmp_path: Path) -> None:
    result = run(aidc_state_dir=str(tmp_path), aidc_run_id="run-7")
    path = tmp_path / plugin.kind / "h1.json"
    assert (result["record_file"], result["changed"]) == (str(path), False)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["host"], record["run_id"]) == ("h1", "run-7")
    assert record["data"] == {"devices": [{"pci": "0000:03:00.0"}], "problems": []}


def test_without_a_state_directory_nothing_is_stored(run: t.Callable[..., t.Any]) -> None:
    assert "record_file" not in run()


def test_a_failed_result_is_not_stored(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run({"failed": True, "msg": "x"}, aidc_state_dir=str(tmp_path))
    assert result["failed"] is True
    assert list(tmp_path.iterdir()) == []


def test_an_unsafe_host_name_is_refused_before_the_host_is_asked(
    run: t.Callable[..., t.Any], tmp_path: Path
) -> None:
    with pytest.raises(AnsibleActionFail, match=r"host name '\.\./h1' cannot be a file name"):
        run(aidc_state_dir=str(tmp_path), inventory_hostname="../h1")


def test_a_state_directory_that_cannot_be_written(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match="aidc_state_dir"):
        run(aidc_state_dir=str(tmp_path / "file"))


@pytest.mark.parametrize("plugin", [Mlx5Port])
def test_what_mlx5_port_has_read_is_a_record_of_mlx5_info(
    run: t.Callable[..., t.Any], plugin: t.Any, tmp_path: Path
) -> None:
    assert "record_file" not in run({"changed": True, "commands": []}, aidc_state_dir=str(tmp_path))
    run({"changed": True, "commands": [], "info": {"devices": [], "problems": []}}, aidc_state_dir=str(tmp_path))
    record = json.loads((tmp_path / "mlx5_info" / "h1.json").read_text(encoding="utf-8"))
    assert (record["kind"], record["data"]) == ("mlx5_info", {"devices": [], "problems": []})
