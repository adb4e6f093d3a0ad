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


@pytest.fixture
def lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    """The plugin with its option set; loading it by name is the playbooks' test."""
    plugin = LookupModule()
    monkeypatch.setattr(plugin, "set_options", lambda **options: None)
    monkeypatch.setattr(plugin, "get_option", lambda name: "{{ somewhere }}")
    rendered = {"{{ somewhere }}": str(tmp_path)}
    monkeypatch.setattr(plugin, "_templar", SimpleNamespace(template=rendered.__getitem__))
    return plugin.run


def test_no_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = LookupModule()
    monkeypatch.setattr(plugin, "set_options", lambda **options: None)
    monkeypatch.setattr(plugin, "get_option", lambda name: None)
    monkeypatch.setattr(plugin, "_templar", SimpleNamespace(template=lambda value: value))
    with pytest.raises(AnsibleLookupError, match="set aidc_state_dir"):
        plugin.run(["mlx5_info"])


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
