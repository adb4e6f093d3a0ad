# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import roce_qos

from tests.unit.plugins.fake import FakeNode
from tests.unit.plugins.module_utils._roce.fake import PCI, Qos

Call = t.Callable[..., t.Any]
PORTS = [{"pci": PCI}]


@pytest.fixture
def qos(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> Qos:
    return Qos(node, monkeypatch)


@pytest.fixture
def call(qos: Qos, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(roce_qos, "Machine", lambda tool_timeout_seconds: qos.node.machine())
        with patch_module_args({"ports": PORTS, **options}), pytest.raises(SystemExit):
            roce_qos.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_check_mode_then_run_then_nothing(call: Call, qos: Qos) -> None:
    predicted = call(_ansible_check_mode=True, _ansible_diff=True)
    assert qos.ports["rail0"]["app"] == {}
    real = call(_ansible_diff=True)
    for key in ("changed", "before", "after", "commands", "diff"):
        assert predicted[key] == real[key]
    assert real["changed"] is True and qos.ports["rail0"]["pfc"][3] is True
    assert real["commands"][-1] == ["write", "/etc/aidc/intent.json"]
    assert call()["changed"] is False
    other = call(persistent=False, dscp=24)
    assert other["changed"] is True and ["write", "/etc/aidc/intent.json"] not in other["commands"]


@pytest.mark.parametrize(("options", "message"), [
    ({"dscp": 64}, "dscp of 0000:03:00.0: got 64, wanted 0 to 63. Nothing was changed."),
    ({"ports": [{"pci": "0000:99:00.0"}]}, "no such mlx5 port"),
])
def test_failure_names_object_got_and_wanted(call: Call, qos: Qos, options: dict[str, t.Any], message: str) -> None:
    result = call(**options)
    assert result["failed"] is True and message in result["msg"] and result["msg"].endswith("Nothing was changed.")
    assert set(result["problems"][0]) == {"object", "got", "wanted", "hint"}
    assert qos.calls("dcb") == []


def test_without_a_tool_the_packages_are_named(call: Call, node: FakeNode) -> None:
    Path(node.root / "usr/sbin/dcb").unlink()
    assert "install the package iproute2 (5.11 or later) or mlnx-tools" in call()["msg"]
