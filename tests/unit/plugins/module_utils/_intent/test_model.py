# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent import model
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import Intent

ONE, TWO = "0000:03:00.0", "0002:03:00.0"
QOS: dict[str, t.Any] = {"ports": [{"pci": ONE, "dscp": None}, {"pci": TWO, "dscp": 24}], "dscp": 26, "ets": None}
GOOD = Intent({"roce_qos": QOS, "mlx5_port": {"ports": [{"pci": ONE}]}}, "run-1", "2026-01-02T03:04:05Z")


def test_text_and_back() -> None:
    assert model.parse(GOOD.text(), model.PATH) == GOOD
    data = json.loads(GOOD.text())
    assert (data["schema_version"], data["run_id"], list(data["sections"])) == (1, "run-1", ["mlx5_port", "roce_qos"])


def test_a_section_is_exchanged_and_the_others_stay() -> None:
    new = GOOD.with_section("roce_gid", {"ports": []}, "2026-02-02T03:04:05Z")
    assert set(new.sections) == {"mlx5_port", "roce_qos", "roce_gid"}
    assert (new.run_id, new.time) == (None, "2026-02-02T03:04:05Z")


def test_options_are_kept_but_for_those_of_the_moment() -> None:
    params = {"ports": [{"pci": ONE, "rdma_mtu_bytes": 4096, "channels": 8}], "info": {"class": {}}, "missing": "fail",
              "persistent": True, "subnets": ("a",), "roce_mode": None, "cnp": {"dscp": 48, "priority": None}}
    assert model.options_of(params) == {"ports": [{"pci": ONE, "channels": 8}], "persistent": True, "subnets": ["a"],
                                        "cnp": {"dscp": 48}}


def changed(**values: t.Any) -> str:
    return json.dumps({**json.loads(GOOD.text()), **values})


@pytest.mark.parametrize(("text", "got", "hint"), [
    ("", "an empty file", "run playbooks/fabric.yml again"),
    (GOOD.text()[:100], "no JSON", "removed the file"),
    ("[]", "list", "removed the file"),
    (changed(schema_version=2), "schema_version 2, wanted 1, the newest", "a newer release of the collection wrote it"),
    (changed(schema_version=0), "schema_version 0, wanted 1", "removed the file"),
    (changed(schema_version=True), "schema_version True", "removed the file"),
    (changed(schema_version="1"), "schema_version '1'", "removed the file"),
    (changed(sections=[]), "sections: list", "removed the file"),
    (changed(sections={"other": {}}), "a section 'other'", "removed the file"),
    (changed(sections={"roce_qos": {}}), "section roce_qos without its ports", "removed the file"),
    (changed(sections={"roce_qos": {"ports": [{"pci": 5}]}}), "section roce_qos without its ports", "removed"),
    (changed(sections={"rail_network": {"ports": []}}), "section rail_network without its rails", "removed"),
    (changed(time=5), "time 5", "removed the file"),
    (changed(run_id=5), "run_id 5", "removed the file"),
])
def test_what_is_no_intent_is_told_and_nothing_is_guessed(text: str, got: str, hint: str) -> None:
    with pytest.raises(AidcError) as caught:
        model.parse(text, model.PATH)
    problem, = caught.value.problems
    assert problem.object == model.PATH and got in problem.text() and hint in problem.hint
    assert "Nothing was changed." in str(caught.value)


@pytest.mark.parametrize("length", range(0, len(GOOD.text()) - 1, 7))
def test_a_file_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(AidcError):
        model.parse(GOOD.text()[:length], model.PATH)


def test_equal_intents_have_no_changes() -> None:
    assert model.changes(GOOD, Intent(GOOD.sections, "run-2", "other")) == []
    without = {**QOS, "ports": [{"pci": ONE.upper()}, QOS["ports"][1]]}
    del without["ets"]
    assert model.changes(GOOD, GOOD.with_section("roce_qos", without, "")) == []


def test_changes_name_section_port_and_option() -> None:
    qos = {**QOS, "dscp": 24, "ports": [{"pci": ONE, "lossless": False}, {"pci": "0000:99:00.0"}]}
    now = Intent({"roce_qos": qos, "roce_gid": {"ports": []}})
    assert [model.words(change) for change in model.changes(GOOD, now)] == [
        "mlx5_port: is gone",
        "roce_qos: dscp was 26, is 24",
        f"roce_qos of {ONE}: lossless was null, is false",
        f"roce_qos of {TWO}: is gone",
        "roce_qos of 0000:99:00.0: is new",
        "roce_gid: is new",
    ]
