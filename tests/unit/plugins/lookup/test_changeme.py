# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleLookupError
from ansible_collections.aidc.gpu_cluster.plugins.lookup import changeme


def test_one_text_for_each_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = changeme.LookupModule()
    monkeypatch.setattr(plugin, "set_options", lambda **options: None)
    (tmp_path / "hosts.yml").write_text("all: {vars: {a: CHANGEME}}\n", encoding="utf-8")
    assert plugin.run([str(tmp_path), "host1,"]) == [f"{tmp_path}/hosts.yml:1: all.vars.a: still marked CHANGEME"]

    def refuse(*_arguments: object, **_options: object) -> str:
        raise PermissionError("no")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(AnsibleLookupError, match="changeme: no; check the files"):
        plugin.run([str(tmp_path)])
