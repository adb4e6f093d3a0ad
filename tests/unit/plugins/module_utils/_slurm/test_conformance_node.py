# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collected samples of Slurm against what is known of them; skipped where there are none."""
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import node_model, node_parse, states

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")


def text(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("number", "state", "reason", "user", "version"), [
    (1, "IDLE", "", "", "22.05.8"),
    (2, "MIXED+DRAIN", "farm:handover slurm->k8s run=7f3a", "root", "22.05.8"),
    (3, "MIXED+DRAIN", "farm:handover slurm->k8s run=7f3a", "root", "22.05.8"),
    (4, "IDLE+DRAIN", "farm:handover slurm->k8s run=7f3a", "root", "22.05.8"),
    (5, "IDLE+DRAIN+INVALID_REG", "gres/gpu count reported lower than configured (2 < 4)", "root", "22.05.8"),
    (7, "IDLE+DRAIN", "gres/gpu count reported lower than configured (0 < 1)", "slurm", "24.05.0-0rc1")])
def test_nodes(number: int, state: str, reason: str, user: str, version: str) -> None:
    (node,) = node_parse.text_nodes(text(f"scontrol_show_node-{number}"))
    assert (node.state.text(), node.reason.raw, node.reason_user, node.version) == (state, reason, user, version)
    assert node.gres.startswith("gpu:") and node.address in ("127.0.0.1", "gpu-n068")
    assert node.reason.kind == ("foreign" if reason else "none")


def test_the_invalid_one() -> None:
    (node,) = node_parse.text_nodes(text("scontrol_show_node-5"))
    assert node_model.invalid(node) == [{"field": "gres/gpu", "got": "2", "wanted": "4"}]


def test_sinfo_json() -> None:
    (node,) = node_parse.sinfo_json(text("sinfo_json-1")).values()
    assert node.name == "l40s-r02-n01" and node.state.drained
    assert (node.reason.raw, node.reason_time) == ("farm:handover slurm->k8s run=7f3a", 1796001005)


def test_words_of_sinfo() -> None:
    """The columns STATE of the first table, and compact and long state of the third one."""
    for line in text("sinfo-1").splitlines()[1:]:
        assert states.compact(line.split()[4])
    for line in text("sinfo-3").splitlines():
        _name, short, long, *_rest = line.split("|")
        assert states.compact(short) == states.compact(long)


def test_what_update_answers_about_unknown_nodes() -> None:
    answers = text("scontrol_update-1")
    assert node_parse.not_found(answers) == ["nosuch"]
