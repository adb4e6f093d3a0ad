# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import node_parse, states

from tests.unit.plugins.module_utils._slurm.fake_slurm import Fake, FakeSlurm


@pytest.fixture
def slurm(tmp_path: Path) -> FakeSlurm:
    return FakeSlurm(tmp_path, {
        "n1": Fake(), "n2": Fake("MIXED", {"DRAIN"}, "aidc:gate:r1: rail 2 slow", "ops", jobs=9),
        "n3": Fake("IDLE", {"DRAIN", "INVALID_REG"}, "gres/gpu count reported lower than configured (2 < 4)", "slurm")})


def test_text_and_json_say_the_same(slurm: FakeSlurm) -> None:
    text = {node.name: node for node in node_parse.text_nodes("".join(slurm.line(name) for name in slurm.nodes))}
    told = {node.name: node for node in node_parse.json_nodes(json.dumps(slurm.document(list(slurm.nodes))))}
    for name in slurm.nodes:
        one, other = text[name].details(), told[name].details()
        for clock in ("reason_time", "boot_time"):
            # The text has this machine's time zone.
            assert (one.pop(clock) is None) == (other.pop(clock) is None)
        one.pop("gres_used"), other.pop("gres_used")
        assert one == other
    assert text["n2"].reason.source == "gate" and text["n2"].reason_user == "ops"
    assert text["n3"].state.invalid and text["n1"].cpus == 144


def test_the_forms_of_the_text(slurm: FakeSlurm) -> None:
    line = slurm.line("n2")
    for separator in ("\n   ", "  "):
        block = line.replace(" NodeAddr=", f"{separator}NodeAddr=").replace(" State=", f"{separator}State=")
        block = block.replace(" Reason=", f"{separator}Reason=")
        assert node_parse.text_nodes(block + "\n") == node_parse.text_nodes(line)


@pytest.mark.parametrize("text", ["State=IDLE all is well", "x NodeName=n9", "see [root@2020-01-01T00:00:00] there",
                                  "a | b", "Comment=none", "Gres=gpu:8 CfgTRES=cpu=1", "back\\slash \"quoted\""])
def test_a_reason_is_only_a_reason(slurm: FakeSlurm, text: str) -> None:
    """Whoever may drain a node writes what he likes."""
    slurm.nodes = {"n1": Fake("MIXED", {"DRAIN"}, f"aidc:gate: {text}", jobs=9)}
    (node,) = node_parse.text_nodes(slurm.line("n1"))
    assert (node.name, node.state.text(), node.gres) == ("n1", "MIXED+DRAIN", "gpu:gb200:4")
    assert node.reason.kind == "ours" and node.reason.raw.startswith("aidc:gate: ")
    (told,) = node_parse.json_nodes(json.dumps(slurm.document(["n1"])))
    assert told.reason.text == text


def test_a_reason_of_two_lines(slurm: FakeSlurm) -> None:
    line = slurm.line("n2").replace("[ops@2026-11-30T01:10:05]", "[ops@2026-11-30T01:10:05]\n          and more")
    (node,) = node_parse.text_nodes(line)
    assert node.reason_user == "ops" and node.reason.text.endswith("and more")


def test_unknown_names() -> None:
    assert node_parse.text_nodes("Node nosuch not found\n") == []
    assert node_parse.not_found("Node nosuch not found\nNode b not found\n") == ["nosuch", "b"]


@pytest.mark.parametrize("text", ["garbage", "NodeName=n1 Arch=x\n", "slurm_load_node error: Unable to contact\n"])
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        node_parse.text_nodes(text)


@pytest.mark.parametrize("data", [[], {}, {"nodes": {}}, {"nodes": [1]}, {"nodes": [{"name": "n1"}]},
                                  {"nodes": [], "errors": [{"error": "no"}]}, "text"])
def test_json_that_is_no_answer(data: t.Any) -> None:
    with pytest.raises(ValueError):
        node_parse.json_nodes(json.dumps(data))


def test_older_json() -> None:
    """22.05's sinfo: the base as a word, flags apart, plain numbers."""
    entry = {"name": "n1", "state": "idle", "state_flags": ["DRAIN"], "reason": "aidc:gate:r1: x",
             "reason_changed_at": 1796001005, "reason_set_by_user": "root", "cpus": 2, "slurmd_version": "22.05.8",
             "features": "", "partitions": ["infer"], "next_state_after_reboot": "invalid", "owner": None}
    (node,) = node_parse.json_nodes(json.dumps({"errors": [], "nodes": [entry]}))
    assert node.state.drained and node.reason_time == 1796001005 and node.version == "22.05.8"
    assert node.features == () and node.partitions == ("infer",)


def test_sinfo_json_of_both_shapes() -> None:
    group = {"node": {"state": ["IDLE", "DRAIN"]}, "nodes": {"total": 2, "nodes": ["n1", "n2"]},
             "reason": {"description": "aidc:gate:r1: x", "time": 0, "user": "root"}}
    found = node_parse.sinfo_json(json.dumps({"sinfo": [group], "errors": []}))
    assert set(found) == {"n1", "n2"} and found["n2"].state.drained and found["n1"].reason.source == "gate"
    old = node_parse.sinfo_json(json.dumps({"nodes": [{"name": "n3", "state": "down"}], "errors": []}))
    assert old["n3"].state.down
    with pytest.raises(ValueError, match="no list sinfo"):
        node_parse.sinfo_json("{}")


def test_sinfo_text() -> None:
    text = ("n1|drained*|gpu:gb200:4|2026-11-30T01:10:05|root|aidc:gate:r1: a | b\n"
            "n2|idle|(null)|Unknown|Unknown|none\nn2|idle|(null)|Unknown|Unknown|none\n")
    found = node_parse.sinfo_text(text)
    assert list(found) == ["n1", "n2"]
    assert found["n1"].reason.text == "a | b" and not found["n1"].state.responding
    assert found["n2"].reason.kind == "none" and found["n2"].reason_user == "" and found["n2"].gres == ""
    for bad in ("n1|idle\n", "n1|weird|x|x|x|x\n"):
        with pytest.raises(ValueError):
            node_parse.sinfo_text(bad)


def test_numbers_that_are_not_set() -> None:
    assert node_parse._number({"set": False, "infinite": False, "number": 0}) is None
    assert node_parse._number({"set": True, "infinite": True, "number": 0}) is None
    assert node_parse._time({"set": True, "infinite": False, "number": 5}) == 5.0
    assert node_parse._time(0) is None
    assert states.parse("IDLE").text() == "IDLE"
