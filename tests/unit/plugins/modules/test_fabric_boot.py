# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import fabric_boot

from tests.unit.plugins.fake import FakeNode, failed


def test_results(node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(fabric_boot, "Machine", lambda tool_timeout_seconds: node.machine())
        with patch_module_args(options), pytest.raises(SystemExit):
            fabric_boot.main()
        return json.loads(capsys.readouterr().out)

    node.override[("systemctl", "is-enabled", "aidc-fabric.service")] = lambda call: failed(1)
    assert run(digest="0" * 64) == {"changed": False, "needs_source": True, "commands": [], "invocation": {
        "module_args": {"check_drift": True, "digest": "0" * 64, "python": "/usr/bin/python3", "source": None,
                        "state": "present", "tool_timeout_seconds": 10}}}
    predicted = run(digest="0" * 64, _ansible_check_mode=True)
    assert predicted["changed"] is True and predicted["enabled"] is False
    # Called past the action plugin, which packs the tool.
    assert "call the module by its full name" in run()["msg"]
