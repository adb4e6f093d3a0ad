# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.errors import AnsibleLookupError
from ansible_collections.aidc.gpu_cluster.plugins.lookup import shipped_data


@pytest.fixture
def lookup(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    plugin = shipped_data.LookupModule()
    monkeypatch.setattr(plugin, "set_options", lambda **options: None)
    return plugin.run


def test_what_is_shipped(lookup: t.Callable[..., t.Any]) -> None:
    classes, specs = lookup(["classes", "argument_specs"])
    assert list(classes) == ["epyc9754", "gb200", "l40s"]
    assert classes["gb200"]["node_class_rail_count"] == 4
    assert specs["nccl_gate"]["nccl_gate_gpus_per_host"]["type"] == "int"


def test_errors(lookup: t.Callable[..., t.Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnsibleLookupError, match="got x, wanted one of classes, argument_specs"):
        lookup(["x"])
    (tmp_path / "inventories/classes").mkdir(parents=True)
    (tmp_path / "inventories/classes/a.yml").write_text("a: [", encoding="utf-8")
    monkeypatch.setattr(shipped_data, "ROOT", tmp_path)
    with pytest.raises(AnsibleLookupError, match=r"a\.yml"):
        lookup(["classes"])
