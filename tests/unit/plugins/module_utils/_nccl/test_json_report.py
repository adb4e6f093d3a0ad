# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.parse import parse_text

from . import rendering
from .rendering import FIXTURES, MIB, Spec


@pytest.mark.parametrize(("schema", "processes"), [(1, 16), (2, 16), (3, 2)])
def test_schemas(schema: int, processes: int) -> None:
    result = parse_text((FIXTURES / f"json-v{schema}.json").read_bytes())
    assert (result.source, result.json_version, result.nccl_version) == ("json", schema, "2.29.3")
    assert (result.row_count, result.ran.ranks, len(result.ran.devices)) == (5, 16, processes)
    assert (result.ran.collective, result.request.max_bytes, result.request.step_kind) == ("all_reduce", 4 << 30,
        "factor")
    assert result.average_printed[0] == pytest.approx(result.average_computed)
    assert judge(result).state == "PASS", judge(result).reason


def test_secrets_of_the_environment_are_not_kept() -> None:
    result = parse_text((FIXTURES / "json-v3.json").read_bytes())
    assert result.transport.environment == {"NCCL_IB_HCA": "mlx5"}
    assert "example-secret" not in json.dumps(result.to_dict())


def test_times_of_every_process() -> None:
    cell = parse_text(rendering.render_json(Spec("2.19.6", per_iteration=True))).rows[0].in_place
    assert cell is not None and len(cell.process_us) == 16
    assert cell.process_us[15] - cell.process_us[0] == pytest.approx(15.0)
    assert cell.extra["i_cv%"] == 0.5


@pytest.mark.parametrize(("old", "new", "state"), [
    ('"okay":"true"', '"okay":"false"', "WRONG"), ('"nwrong":0.0', '"nwrong":3.0', "WRONG"),
     ('"nwrong":0.0', '"nwrong":"nan"', "WRONG"),
    ('"nwrong":0.0', '"nwrong":null', "UNVERIFIED"), ('"bus_bw":', '"bus_bw":inf,"x":', "INVALID"),
    ('"end_time"', '"other"', "INCOMPLETE"), ('"rank":3', '"rank":33', "INCOMPLETE"),
    ('"errors":[""]', '"errors":["Call to ibv_modify_qp failed with 22 Invalid argument"]', "CRASH"),
    ('"size":67108864', '"size":null', "INCOMPLETE"), ('"average_bus_bandwidth"', '"average"', "INCOMPLETE"),
])
def test_edits(old: str, new: str, state: str) -> None:
    text = rendering.render_json(Spec("2.19.6"))
    assert old in text
    assert judge(parse_text(text.replace(old, new))).state == state


def test_bare_nan_and_one_sided_rows() -> None:
    text = rendering.render_json(Spec("2.19.6"))
    assert judge(parse_text(text.replace('"time":', '"time":nan,"was":', 1))).state == "INVALID"
    document = json.loads(text)
    for entry in document["results"]:
        entry["out_of_place"] = None
    document["average_bus_bandwidth"]["bandwidth"] = sum(
        entry["in_place"]["bus_bw"] for entry in document["results"]) / len(document["results"])
    result = parse_text(json.dumps(document, indent=2))
    assert result.rows[0].out_of_place is None and judge(result).state == "PASS"


def test_every_cut_is_incomplete() -> None:
    text = rendering.render_json(Spec("2.19.6", wrong_at=0, max_bytes=64 * MIB))
    for at in range(len(text)):
        assert judge(parse_text(text[:at])).state != "PASS"
