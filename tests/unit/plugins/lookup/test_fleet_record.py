# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleLookupError
from ansible_collections.aidc.gpu_cluster.plugins.lookup.fleet_record import LookupModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store


def plugin(monkeypatch: pytest.MonkeyPatch, option: str | None, rendered: dict[str, str]) -> LookupModule:
    """The plugin with its option set; loading it by name is the playbooks' test."""
    found = LookupModule()
    monkeypatch.setattr(found, "set_options", lambda **options: None)
    monkeypatch.setattr(found, "get_option", lambda name: option)
    monkeypatch.setattr(found, "_templar", SimpleNamespace(template=rendered.__getitem__))
    return found


@pytest.fixture
def lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    return plugin(monkeypatch, str(tmp_path), {}).run


def test_no_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for variables in (None, {}, {"aidc_state_dir": "", "inventory_dir": "/x"}):
        with pytest.raises(AnsibleLookupError, match="set aidc_state_dir"):
            plugin(monkeypatch, None, {"": ""}).run(["mlx5_info"], variables)


def test_the_variable_else_the_folder_beside_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.store(tmp_path, "mlx5_info", "h1", {"devices": []}, None)
    store.store(tmp_path / ".state", "mlx5_info", "h2", {"devices": []}, None)
    inventory = {"inventory_dir": str(tmp_path)}
    rendered = {"{{ somewhere }}": str(tmp_path)}
    run = plugin(monkeypatch, None, rendered).run
    assert list(run(["mlx5_info"], {**inventory, "aidc_state_dir": "{{ somewhere }}"})[0]) == ["h1"]
    assert list(run(["mlx5_info"], inventory)[0]) == ["h2"]


def test_one_mapping_per_kind(tmp_path: Path, lookup: t.Callable[..., t.Any]) -> None:
    store.store(tmp_path, "mlx5_info", "h1", {"devices": []}, None)
    mlx5, gpu = lookup(["mlx5_info", "gpu_info"])
    assert mlx5["h1"]["data"] == {"devices": []}
    assert gpu == {}


def test_a_broken_record_is_an_error(tmp_path: Path, lookup: t.Callable[..., t.Any]) -> None:
    (tmp_path / "mlx5_info").mkdir()
    (tmp_path / "mlx5_info" / "h1.json").write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(AnsibleLookupError, match=r"h1\.json: schema_version: got None, wanted 1"):
        lookup(["mlx5_info"])
