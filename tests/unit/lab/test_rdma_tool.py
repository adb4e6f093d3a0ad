# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for rdma over real processes: who has a device open to read and write has a connection."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle.model import QueuePair

from tests.unit.lab.test_qos_tools import load

RDMA = Path(__file__).resolve().parents[3] / "lab/guest/usr/sbin/rdma"
HOLD = "import os, sys; os.open(sys.argv[1], int(sys.argv[2])); print(flush=True); sys.stdin.read()"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = load(RDMA)
    monkeypatch.setattr(module, "VERBS", str(tmp_path / "verbs"))
    for number in range(2):
        (tmp_path / f"dev/infiniband/uverbs{number}").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"dev/infiniband/uverbs{number}").touch()
        (tmp_path / f"verbs/uverbs{number}").mkdir(parents=True)
        (tmp_path / f"verbs/uverbs{number}/ibdev").write_text(f"mlx5_{number}\n", encoding="ascii")
    module.devices_at = tmp_path / "dev/infiniband"
    return module


def hold(tool: Any, name: str, flags: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tool.devices_at / name), str(flags)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_connections_live_as_long_as_their_process(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with hold(tool, "uverbs1", 2) as user, hold(tool, "uverbs0", 0) as reader:
        assert tool.main(["-j", "resource", "show", "qp"]) == 0
        shown = capsys.readouterr().out
        (found,) = parse.queue_pairs(shown)
        assert (found.device, found.pid) == ("mlx5_1", user.pid) and found.comm.startswith("python")
        assert [item["type"] for item in json.loads(shown)] == ["GSI", "GSI", "RC"]
        assert tool.main(["res", "show", "qp"]) == 0
        text = capsys.readouterr().out.splitlines()
        assert text[0] == "link mlx5_0/1 lqpn 1 type GSI state RTS sq-psn 0 comm [ib_core] "
        assert text[2].startswith("link mlx5_1/1 lqpn ") and f" pid {user.pid} comm python" in text[2]
        for process in (user, reader):
            process.communicate()
    assert tool.main(["-j", "resource", "show", "qp"]) == 0
    assert parse.queue_pairs(capsys.readouterr().out) == ()


def test_without_devices_and_with_other_words(tool: Any, capsys: pytest.CaptureFixture[str],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "VERBS", "/no/such/folder")
    assert tool.main(["-j", "resource", "show", "qp"]) == 0 and json.loads(capsys.readouterr().out) == []
    assert tool.main(["link", "show"]) == 1 and "Usage" in capsys.readouterr().err


def test_a_connection_of_the_kernel_has_no_pid() -> None:
    assert parse.queue_pairs('[{"ifname": "mlx5_0", "type": "RC", "comm": "nvme_rdma"}]') == (
        QueuePair("mlx5_0", "nvme_rdma"),)
