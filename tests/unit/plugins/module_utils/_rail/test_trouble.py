# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools that fail, owners that refuse, and runs that are killed."""
from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import apply
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import PENDING_FILE

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.module_utils._rail.case import REQUEST, WANTS, mutations, run
from tests.unit.plugins.rail_node import RailNode, rail_node


class Killed(BaseException):
    """Stands for a signal that no code can catch."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(16))
def test_killed_at_any_step_the_next_run_converges(
    node: RailNode, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    steps = run(node, check_mode=True)["commands"]
    if number >= len(steps):
        assert len(steps) >= 10
        return
    seen = [0]

    def kill(name: str) -> None:
        original = getattr(apply.Applying, name)

        def replaced(self: t.Any, step: t.Any) -> t.Any:
            here, seen[0] = seen[0], seen[0] + 1
            if here == number and not after:
                raise Killed
            result = original(self, step)
            if here == number:
                raise Killed
            return result

        monkeypatch.setattr(apply.Applying, name, replaced)

    with monkeypatch.context(), pytest.raises(Killed):
        kill("_file")
        kill("_tool")
        run(node)
    monkeypatch.undo()
    result = run(node)
    assert [entry["running"]["mtu_bytes"] for entry in result["after"]] == [4200, 9000]
    assert [entry["saved"]["ignore_carrier"] for entry in result["after"]] == [True, True]
    assert not (node.root / PENDING_FILE[1:]).exists()
    assert run(node)["changed"] is False


BROKEN = [Result((), "missing"), Result((), "timeout", None, "", "no answer within 1 s"), ok("garbage"),
          failed(1, "broken")]
QUESTIONS: dict[str, tuple[str, ...]] = {
    "networkd": ("networkctl", "--json=short"), "netplan": ("netplan", "get"), "networkmanager": ("nmcli", "-t"),
}


@pytest.mark.parametrize("answer", BROKEN)
@pytest.mark.parametrize("question", ["owner", "addr", "rule", "route"])
def test_a_tool_that_is_missing_hangs_or_prints_garbage(node: RailNode, question: str, answer: Result) -> None:
    argv: dict[str, tuple[str, ...]] = {
        "owner": QUESTIONS[node.owner], "addr": ("ip", "-d", "-j", "addr"), "rule": ("ip", "-j", "-4", "rule"),
        "route": ("ip", "-j", "-4", "route", "show", "table"),
    }
    node.override[argv[question]] = lambda call: answer
    before = node.files()
    for check_mode in (True, False):
        with pytest.raises(AidcError, match=r"got .* wanted .* Nothing was changed\."):
            run(node, check_mode=check_mode)
    assert node.files() == before
    assert mutations(node) == []


JUDGES: dict[str, tuple[str, ...]] = {
    "netplan": ("netplan", "generate"), "networkmanager": ("nmcli", "connection", "load"),
}


@pytest.mark.parametrize("owner", JUDGES)
def test_files_that_their_owner_refuses_are_put_back(owner: str, tmp_path: Path) -> None:
    node = rail_node(tmp_path, owner)
    node.override[JUDGES[owner]] = lambda call: failed(1, "Error in network definition")
    before = node.files()
    with pytest.raises(AidcError, match=r"Error in network definition.*put back.*Nothing was changed\."):
        run(node)
    assert node.files() == before
    node.override.clear()
    run(node)
    before = node.files()
    node.override[JUDGES[owner]] = lambda call: failed(1, "no")
    request = dataclasses.replace(REQUEST, rails=(WANTS[0], dataclasses.replace(WANTS[1], mtu_bytes=4200)))
    with pytest.raises(AidcError, match="put back"):
        run(node, request)
    assert node.files() == before
    node.override.clear()
    assert run(node)["changed"] is False


def test_an_owner_that_reports_success_without_effect(node: RailNode) -> None:
    tool = "nmcli" if node.owner == "networkmanager" else "networkctl"
    for verb in (("--wait",), ("reload",)):
        node.override[(tool, *verb)] = lambda call: ok()
    with pytest.raises(AidcError) as caught:
        run(node)
    wanted = f"0000:03:00.0 (rail0): got 198.51.100.1/24 is missing, wanted what {node.owner} was told"
    assert wanted in str(caught.value)
    assert "Done before the error: write" in str(caught.value)
