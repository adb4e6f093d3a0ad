# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback speaks in playbooks/plan.yml in check mode, and nowhere else. (tests/integration shows it in a run.)"""
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.template import trust_as_template
from ansible.utils.context_objects import CLIArgs
from ansible_collections.aidc.gpu_cluster.plugins.callback import site_plan


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., list[str]]:
    def call(variables: dict[str, t.Any], name: str = "/x/playbooks/plan.yml", check: bool = True) -> list[str]:
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"check": check}))
        callback: t.Any = site_plan.CallbackModule()
        lines: list[str] = []
        callback._display = SimpleNamespace(display=lines.append, warning=lines.append)
        manager = SimpleNamespace(get_vars=lambda **_what: variables)
        callback.v2_playbook_on_start(SimpleNamespace(_file_name=name))
        callback.v2_playbook_on_play_start(
            SimpleNamespace(get_variable_manager=lambda: manager, get_loader=DataLoader))
        role = SimpleNamespace(get_name=lambda: "aidc.gpu_cluster.mlx5_port")

        def result(host: str, data: dict[str, t.Any]) -> t.Any:
            return SimpleNamespace(host=SimpleNamespace(get_name=lambda: host), task=SimpleNamespace(_role=role),
                                   result=data)

        callback.v2_runner_on_ok(result("h1", {"changed": True}))
        callback.v2_runner_on_ok(result("localhost", {"changed": False}))
        callback.v2_runner_on_failed(result("h2", {"msg": "got x"}))
        callback.v2_runner_on_failed(result("h2", {"msg": "ignored"}), ignore_errors=True)
        callback.v2_runner_on_unreachable(result("h3", {"msg": "timed out"}))
        callback.v2_playbook_on_stats(None)
        return lines

    return call


def test_table_and_file(run: t.Callable[..., list[str]], tmp_path: Path) -> None:
    lines = run({"aidc_state_dir": trust_as_template("{{ base }}/.state"), "base": str(tmp_path)})
    assert any(line.startswith("h1") and "mlx5_port" in line for line in lines)
    assert "h2: mlx5_port: failed: got x" in lines and "h3: unreachable: timed out" in lines
    assert not any("ignored" in line or "localhost" in line for line in lines)
    data = json.loads((tmp_path / ".state" / "plan.json").read_text(encoding="utf-8"))
    assert sorted(data["hosts"]) == ["h1", "h2", "h3"]


def test_the_named_file_goes_first(run: t.Callable[..., list[str]], tmp_path: Path) -> None:
    run({"aidc_state_dir": str(tmp_path), "aidc_plan_file": str(tmp_path / "my.json")})
    assert [path.name for path in tmp_path.iterdir()] == ["my.json"]


def test_a_file_that_cannot_be_written_is_told(run: t.Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert any("was not written" in line for line in run({"aidc_plan_file": str(tmp_path / "file" / "x.json")}))


@pytest.mark.parametrize("how", [{"name": "/x/site.yml"}, {"check": False}])
def test_silent_elsewhere(run: t.Callable[..., list[str]], tmp_path: Path, how: dict[str, t.Any]) -> None:
    assert run({"aidc_state_dir": str(tmp_path)}, **how) == []
    assert list(tmp_path.iterdir()) == []
