# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import mlx5_port

from tests.unit.plugins.fake import FakeNode

PORTS = [{"pci": "0000:03:00.0", "mtu_bytes": 4200}]


def call(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(mlx5_port, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit):
        mlx5_port.main()
    return json.loads(capsys.readouterr().out)


def test_check_mode_then_run_then_nothing(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    predicted = call(node, monkeypatch, capsys, ports=PORTS, _ansible_check_mode=True, _ansible_diff=True)
    assert node.mtu(node.rails[0]) == 1500
    real = call(node, monkeypatch, capsys, ports=PORTS, _ansible_diff=True)
    assert node.mtu(node.rails[0]) == 4200
    for key in ("changed", "before", "after", "commands", "diff"):
        assert predicted[key] == real[key]
    assert real["changed"] is True
    assert real["commands"][-1] == ["write", "/etc/aidc/intent.json"]
    assert call(node, monkeypatch, capsys, ports=PORTS)["changed"] is False
    # Neither what is only expected nor what is only returned is another intent.
    more = {"ports": [{**PORTS[0], "rdma_mtu_bytes": 4096}], "info": {}}
    assert call(node, monkeypatch, capsys, **more)["changed"] is False


def test_failure_names_object_got_wanted_and_hint(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = call(node, monkeypatch, capsys, ports=[{"pci": "0000:99:00.0", "mtu_bytes": 4200}])
    assert result["failed"] is True
    assert result["msg"].endswith("Nothing was changed.")
    assert result["problems"] == [{
        "object": "0000:99:00.0", "got": "no such mlx5 port", "wanted": "an mlx5 port's PCI address",
        "hint": "there is: 0000:03:00.0, 0002:03:00.0"}]
