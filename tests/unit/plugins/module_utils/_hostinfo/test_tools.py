# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import tools
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo.tools import Notes

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.host_node import gb200


def test_ask_tells_missing_from_broken(tmp_path: Path) -> None:
    node, notes = gb200(tmp_path), Notes()
    node.tools = {("gone",): lambda: Result((), "missing"), ("bad",): lambda: failed(3, "no"),
                  ("odd",): lambda: ok("x")}
    assert [tools.ask(node.machine(), notes, name, (name,), int) for name in ("gone", "bad", "odd")] == [None] * 3
    assert set(notes.why) == {"gone", "bad", "odd"}
    assert [problem.object for problem in notes.problems] == ["bad", "odd"]


def test_only_a_failure_may_need_root(tmp_path: Path) -> None:
    node, notes = gb200(tmp_path), Notes(is_root=False)
    node.tools = {("bad",): lambda: failed(1, "denied"), ("gone",): lambda: Result((), "missing")}
    for name in ("bad", "gone"):
        tools.ask(node.machine(), notes, name, (name,), str, root_only=True)
    assert (notes.needs_root, notes.problems) == (["bad"], [])
    assert "it may need root" in notes.why["bad"]


def test_no_question_to_nvidia_smi_without_a_gpu(tmp_path: Path) -> None:
    node = gb200(tmp_path)
    assert tools.nvlink(node.machine(), Notes(), has_gpu=False) is None
    assert node.calls == []
