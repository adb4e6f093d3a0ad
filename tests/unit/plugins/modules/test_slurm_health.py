# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_health

from tests.unit.plugins.fake import FakeNode


def test_results(node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(slurm_health, "Machine", node.machine)

    def run(**options: t.Any) -> t.Any:
        with patch_module_args(options), pytest.raises(SystemExit):
            slurm_health.main()
        return json.loads(capsys.readouterr().out)

    assert run(digest="0" * 64)["needs_source"] is True
    assert run(digest="0" * 64, _ansible_check_mode=True)["changed"] is True
    assert "call the module by its full name" in run()["msg"]
    assert run(digest="0" * 64, fail_after=0)["problems"][0]["got"] == "fail_after: 0"
