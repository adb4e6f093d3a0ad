# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot import cli
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.lock import host_lock
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import PATH, Intent

from tests.unit.plugins.fake import FakeNode
from tests.unit.plugins.module_utils._roce.fake import Qos

ONE = "0000:03:00.0"
INTENT = Intent({"roce_qos": {"ports": [{"pci": ONE}]}}, None, "2026-01-02T03:04:05Z")
Call = t.Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def qos(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> Qos:
    node.put(PATH, INTENT.text())
    (node.root / "sys/class/net/rail0/device").symlink_to(f"../../../{ONE}")
    return Qos(node, monkeypatch)


@pytest.fixture
def call(qos: Qos, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*argv: str) -> tuple[int, str, str]:
        code = cli.main(argv, qos.node.machine())
        return (code, *capsys.readouterr())

    return run


def test_check_then_apply_then_nothing(call: Call, qos: Qos) -> None:
    code, out, _err = call("--check")
    assert code == 2 and "hand: differs: roce_qos: pfc is []; would run: dcb pfc set dev rail0" in out
    assert qos.ports["rail0"]["pfc"][3] is False
    code, out, _err = call("apply", "--reason", "boot")
    assert code == 0 and "boot: roce_qos: dcb pfc set dev rail0 prio-pfc all:off 3:on (pfc is [])\n" in out
    assert len(out.splitlines()) == 4
    quiet = "boot: nothing differs from the intent of 2026-01-02T03:04:05Z\n"
    assert call("apply", "--reason", "boot") == (0, quiet, "")
    assert call("--check")[0] == 0


def test_json(call: Call, qos: Qos) -> None:
    code, out, _err = call("--check", "--json")
    data = json.loads(out)
    assert code == 2 and data["schema_version"] == 1 and data["intent"] == {"time": INTENT.time, "run_id": None}
    assert data["done"] == [] and {entry["port"] for entry in data["drift"]} == {ONE}
    code, out, _err = call("apply", "--json")
    assert code == 0 and json.loads(out)["drift"] == [] and len(json.loads(out)["done"]) == 4
    assert json.loads(call("--check", "--json")[1])["drift"] == []


def test_what_cannot_be_put_right(call: Call, qos: Qos) -> None:
    qos.refuse.add("pfc")
    code, out, _err = call("apply")
    assert code == 2 and "hand: still differs: roce_qos: pfc of 0000:03:00.0" in out


def test_a_netdev_that_is_no_port_of_the_intent(call: Call, qos: Qos) -> None:
    assert call("apply", "--reason", "udev:eth0") == (0, "udev:eth0: no port of the intent\n", "")
    assert qos.calls("dcb") == []
    code, out, _err = call("apply", "--reason", "udev:rail0")
    assert code == 0 and out.startswith("udev:rail0: roce_qos: dcb")


@pytest.mark.parametrize(("text", "said"), [
    (None, "got no file, wanted the host's intent"), ("{", "no JSON"), ('{"schema_version": 2}', "a newer release"),
])
def test_without_an_intent_there_is_no_verdict_and_no_write(
    call: Call, qos: Qos, text: str | None, said: str
) -> None:
    (qos.node.root / PATH[1:]).unlink()
    if text is not None:
        qos.node.put(PATH, text)
    for argv in (["apply"], ["--check"], ["--check", "--json"]):
        code, out, err = call(*argv)
        assert (code, out) == (3, "") and said in err
    assert qos.node.calls == []


@pytest.mark.parametrize("argv", [
    [], ["apply", "--check"], ["look"], ["apply", "--reason", "udev"], ["apply", "--reason", "boot:x"],
    ["apply", "--reason", "sun"], ["--colour"],
])
def test_a_wrong_command_is_no_verdict(call: Call, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        call(*argv)
    assert caught.value.code == 3 and "usage: aidc-fabric" in capsys.readouterr().err


def test_a_lock_that_stays_anothers(call: Call, qos: Qos) -> None:
    with host_lock(qos.node.machine(), "mlx5_port"):
        code, out, err = call("apply")
    assert (code, out) == (2, "") and "held by pid 1" in err and qos.node.now >= 60
