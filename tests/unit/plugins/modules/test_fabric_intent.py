# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import PATH, Intent
from ansible_collections.aidc.gpu_cluster.plugins.modules import fabric_intent

from tests.unit.plugins.fake import FakeNode

INTENT = Intent({"roce_qos": {"ports": [{"pci": "0000:03:00.0"}]}}, None, "2026-01-02T03:04:05Z")


@pytest.fixture
def call(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> t.Callable[..., t.Any]:
    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(fabric_intent, "Machine", node.machine)
        with patch_module_args(options), pytest.raises(SystemExit):
            fabric_intent.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_read_good_and_no_good(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    node.put(PATH, INTENT.text())
    assert call()["intent"] == INTENT.sections
    failed = call(state="restored")
    assert failed["failed"] is True and failed["msg"].endswith("Nothing was changed.")
    assert call(state="good", _ansible_check_mode=True)["commands"] == call(state="good")["commands"]
    assert call(state="restored")["changed"] is False
