# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import PENDING_FILE

from tests.unit.plugins.fake import FakeNode, failed, ok

MAIN = "/etc/systemd/network/20-rail0.network"


def test_files_in_reading_order_each_name_once(node: FakeNode) -> None:
    for folder in ("etc", "run", "usr/local/lib", "usr/lib"):
        node.put(f"/{folder}/systemd/network/20-rail0.network.d/{folder[-1]}.conf", "[Link]\n")
        node.put(f"/{folder}/systemd/network/20-rail0.network.d/90-same.conf", f"# {folder}\n")
    for name in ("ignored.txt", ".hidden.conf"):
        node.put(f"{MAIN}.d/{name}", "[Link]\nMTUBytes=1\n")
    # A link to /dev/null masks the file of that name in the other directories.
    (node.root / f"{MAIN}.d/n.conf"[1:]).symlink_to("/dev/null")
    saved = io.read_saved(node.machine(), MAIN)
    assert [file.path for file in saved.files] == [
        MAIN, f"{MAIN}.d/90-same.conf", "/usr/local/lib/systemd/network/20-rail0.network.d/b.conf",
        f"{MAIN}.d/c.conf", f"{MAIN}.d/n.conf",
    ]
    assert saved.files[1].text == "# etc\n"
    assert saved.files[-1].text == ""


def test_a_network_file_that_was_removed_since(node: FakeNode) -> None:
    assert io.read_saved(node.machine(), "/etc/systemd/network/none.network").files == ()


def test_gather(node: FakeNode) -> None:
    node.put(PENDING_FILE, "x")
    networkd = io.gather(node.machine(), ["rail0", "not-there"])
    assert networkd.active
    assert list(networkd.saved) == [MAIN]
    assert networkd.reload_pending
    assert networkd.problem is None


def test_networkd_that_does_not_run_is_not_asked(node: FakeNode) -> None:
    node.networkd = "inactive"
    assert io.gather(node.machine(), ["rail0"]).state == "inactive"
    assert not any(call[0] == "networkctl" for call in node.calls)


def test_no_systemd(node: FakeNode) -> None:
    node.override[("systemctl",)] = lambda call: Result(call, "missing")
    assert io.gather(node.machine(), ["rail0"]).state == "the program is not installed"


@pytest.mark.parametrize(("answer", "got"), [
    (ok("systemd-networkd is not running"), "cannot be read"),
    (failed(1, "Unknown option"), "exit status 1: Unknown option"),
    (Result((), "timeout", None, "", "no answer within 1 s"), "no answer"),
])
def test_a_list_that_does_not_come(node: FakeNode, answer: Result, got: str) -> None:
    node.override[("networkctl",)] = lambda call: answer
    problem = io.gather(node.machine(), ["rail0"]).problem
    assert problem is not None
    assert got in problem.text()


def test_unreadable_file(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: object) -> str:
        raise PermissionError(13, "Permission denied", MAIN)

    monkeypatch.setattr(io, "read_text", broken)
    problem = io.gather(node.machine(), ["rail0"]).problem
    assert problem is not None
    assert problem.text() == f"{MAIN}: got Permission denied, wanted a readable file (run as root)"


def states(node: FakeNode, *answers: str) -> None:
    """Let rail0 go through these states, one per question; the last one stays."""
    left = list(answers)

    def answer(call: tuple[str, ...]) -> Result:
        state = left.pop(0) if len(left) > 1 else left[0]
        admin, _slash, operational = state.partition("/")
        return ok(json.dumps({"Interfaces": [
            {"Name": "rail0", "AdministrativeState": admin, "OperationalState": operational or "routable"}]}))

    node.override[("networkctl", "--json=short")] = answer


def test_one_good_answer_is_not_enough(node: FakeNode) -> None:
    states(node, "configured", "configuring", "configured", "configured")
    assert io.wait_configured(node.machine(), ("rail0",)) is None
    assert len(node.calls) == 4


def test_a_link_without_carrier_is_done(node: FakeNode) -> None:
    states(node, "configuring/no-carrier")
    assert io.wait_configured(node.machine(), ("rail0",)) is None


def test_the_wait_ends_and_names_the_last_state(node: FakeNode) -> None:
    states(node, "configuring")
    problem = io.wait_configured(node.machine(), ("rail0", "rail9"))
    assert problem is not None
    assert "rail0 configuring, rail9 gone" in problem.got
    assert node.now == pytest.approx(io.SETTLE_SECONDS, abs=0.5)


def test_a_failed_link_is_not_waited_for(node: FakeNode) -> None:
    states(node, "failed")
    problem = io.wait_configured(node.machine(), ("rail0",))
    assert problem is not None
    assert problem.got == "rail0 failed"
    assert node.now == 0


def test_networkctl_breaks_while_we_wait(node: FakeNode) -> None:
    node.override[("networkctl",)] = lambda call: failed(1, "no bus")
    problem = io.wait_configured(node.machine(), ("rail0",))
    assert problem is not None
    assert "no bus" in problem.got
