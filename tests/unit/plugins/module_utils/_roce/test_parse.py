# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import parse

from tests.unit.plugins.module_utils._roce.fake import FRESH, Qos

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
DEFAULT = [dscp >> 3 for dscp in range(64)]


def test_documents_of_a_batch_stand_side_by_side() -> None:
    assert parse.json_documents('{"a":1},{}\n,{"b":[2]}\n') == [{"a": 1}, {}, {"b": [2]}]
    assert parse.json_documents("") == []
    for bad in ('{"a":1},[2]', '{"a":1', "dcb: nonsense"):
        with pytest.raises(ValueError):
            parse.json_documents(bad)


@pytest.mark.parametrize(("kind", "data", "wanted"), [
    ("pfc", {"prio_pfc": [False, True] * 4, "delay": 12}, {"pfc": [1, 3, 5, 7], "cable_length": 12}),
    ("ets", {"prio_tc": [0] * 8, "tc_tsa": ["ets"] + ["strict"] * 7, "tc_bw": [100] * 8},
     {"ets": {"prio_tc": [0] * 8, "tc_tsa": ["ets"] + ["strict"] * 7, "tc_bw": [100] + [0] * 7}}),
    ("app", {}, {"trust": "pcp", "dscp_map": [0] * 64, "dscp_missing": list(range(64))}),
    ("app", {"dscp_prio": [[dscp, dscp >> 3] for dscp in range(64)]}, {"trust": "dscp", "dscp_map": DEFAULT}),
    ("dcbx", {"host": True, "ieee": True}, {"dcbx": "host"}),
    ("dcbx", {"cee": True, "ieee": True}, {"dcbx": "firmware"}),
    ("buffer", {"prio_buffer": [0] * 8, "buffer_size": [9] * 8, "total_size": 100},
     {"buffer": {"prio_buffer": [0] * 8, "buffer_size": [9] * 8}, "buffer_total": 100}),
])
def test_dcb_json(kind: str, data: dict[str, t.Any], wanted: dict[str, t.Any]) -> None:
    assert parse.dcb_json(kind, data) == wanted


def test_old_json_has_a_third_item_in_each_entry() -> None:
    found = parse.dcb_json("app", {"dscp_prio": [[26, 3, " "]]})
    assert (found["dscp_map"][26], len(found["dscp_missing"])) == (3, 63)


@pytest.mark.parametrize(("kind", "data"), [
    ("pfc", {"prio_pfc": [1] * 8, "delay": 7}), ("pfc", {"prio_pfc": [True] * 7, "delay": 7}),
    ("ets", {"prio_tc": [0] * 8}), ("app", {"dscp_prio": [[64, 0]]}), ("app", {"dscp_prio": [[1, 8]]}),
])
def test_json_that_is_not_dcbs_is_refused(kind: str, data: dict[str, t.Any]) -> None:
    with pytest.raises((ValueError, KeyError)):
        parse.dcb_json(kind, data)


@pytest.mark.parametrize("kind", ["pfc", "ets", "app", "dcbx", "buffer"])
def test_text_and_json_of_dcb_say_the_same(qos: Qos, kind: str) -> None:
    qos.ports["rail0"]["app"] = {dscp: dscp >> 3 for dscp in range(64)}
    found = parse.dcb_text(kind, qos.dcb_text(kind, "rail0"))
    assert found == parse.dcb_json(kind, qos.dcb_object(kind, "rail0"))
    for bad in ("nonsense: 1\n", "\x00\xff"):
        with pytest.raises(ValueError):
            parse.dcb_text(kind, bad)


def test_mlnx_qos_of_a_fresh_port_and_of_a_configured_one() -> None:
    fresh = parse.mlnx_qos(Qos.mlnx_qos_text(FRESH))
    assert (fresh["trust"], fresh["pfc"], fresh["dcbx"]) == ("pcp", [], "host")
    assert fresh["ets"]["prio_tc"] == [1, 0, 2, 3, 4, 5, 6, 7]
    assert fresh["buffer"] == {"prio_buffer": [1] * 8, "buffer_size": [0, 187200, 0, 0, 0, 0, 0, 0]}
    done = {**FRESH, "host": False, "app": dict(enumerate(DEFAULT)), "pfc": [False] * 3 + [True] + [False] * 4,
            "tc_tsa": ["ets"] * 2 + ["strict"] * 6, "tc_bw": [60, 40] + [100] * 6}
    found = parse.mlnx_qos(Qos.mlnx_qos_text(done))
    assert (found["trust"], found["pfc"], found["dcbx"], found["dscp_map"]) == ("dscp", [3], "firmware", DEFAULT)
    assert found["ets"]["tc_bw"] == [60, 40, 0, 0, 0, 0, 0, 0] and "dscp_missing" not in found


@pytest.mark.parametrize("cut", ["DCBX mode", "Priority trust", "\tenabled", "\t priority:  5"])
def test_mlnx_qos_without_a_part_is_refused(cut: str) -> None:
    lines = [line for line in Qos.mlnx_qos_text(FRESH).splitlines() if not line.startswith(cut)]
    with pytest.raises(ValueError):
        parse.mlnx_qos("\n".join(lines))


def test_mlnx_qos_with_its_warnings_and_an_old_copys_lines() -> None:
    text = Qos.mlnx_qos_text(FRESH).replace("Receive buffer", "default priority:\nReceive buffer").replace(
        "max_buffer_size=2044224", "total_size=2044224,")
    warning = "****** WARNING: lldpad service is running and may overwrite your settings ******\n\n"
    assert parse.mlnx_qos(warning + text) == parse.mlnx_qos(Qos.mlnx_qos_text(FRESH))


@pytest.mark.parametrize(("text", "wanted"), [
    ("", 0), ("Global tclass=106\n", 106), ("src_ip=192.0.2.1,dst_ip=192.0.2.2/32,tclass=104", 0),
    ("src_ip=192.0.2.1,tclass=96\nGlobal tclass=8", 8),
])
def test_traffic_class(text: str, wanted: int) -> None:
    assert parse.global_traffic_class(text) == wanted


def test_pause_and_sizes() -> None:
    assert parse.pause("Pause parameters for x:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n") == "rx"
    assert parse.pause("RX:\ton\nTX:\ton\n") == "rx and tx" and parse.pause("RX:\toff\nTX:\toff\n") is None
    assert [parse.size_bytes(text) for text in ("10Kb", "1Mb", "0b", "187200b")] == [10240, 1 << 20, 0, 187200]
    for bad in ((parse.pause, "Cannot get"), (parse.size_bytes, "ten"), (parse.global_traffic_class, "x"),
                (parse.port_buffer_size, "Port buffer size = 5")):
        with pytest.raises(ValueError):
            bad[0](bad[1])


# -- conformance: outputs collected elsewhere, if they are here -----------------------------------

def sample(name: str) -> str:
    path = SAMPLES / name
    if not path.exists():
        pytest.skip("no folder of field samples beside the checkout")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("number", "trust", "pfc", "cable"), [
    (1, "dscp", [3], 7), (2, "dscp", [1, 2, 3, 4, 5], 7), (3, "pcp", [], 7), (4, "dscp", [0, 2, 6, 7], 10)])
def test_conformance_mlnx_qos(number: int, trust: str, pfc: list[int], cable: int) -> None:
    found = parse.mlnx_qos(sample(f"mlnx_qos-{number}.txt"))
    assert (found["trust"], found["pfc"], found["cable_length"], found["dcbx"]) == (trust, pfc, cable, "host")
    assert found["dscp_map"] == (DEFAULT if trust == "dscp" else [0] * 64)
    assert found["ets"]["prio_tc"] == [1, 0, 2, 3, 4, 5, 6, 7]
    if number == 4:
        assert found["ets"]["tc_bw"] == [10, 10, 10, 10, 10, 10, 0, 40] and found["ets"]["tc_tsa"][6] == "strict"


def test_conformance_dcb() -> None:
    # dcb_app-1 and -2 are the same table, with names and with numbers; the module asks for numbers (-N).
    found = parse.dcb_text("app", sample("dcb_app-2.txt"))
    assert found["trust"] == "dscp" and (found["dscp_map"][24], found["dscp_map"][48]) == (3, 6)
    with pytest.raises(ValueError):
        parse.dcb_text("app", sample("dcb_app-1.txt"))
    assert parse.dcb_text("pfc", sample("dcb_pfc-1.txt")) == {"pfc": [6, 7], "cable_length": 4096}
    ets = parse.dcb_text("ets", sample("dcb_ets-1.txt"))["ets"]
    assert ets["tc_bw"] == [33, 33, 34, 0, 0, 0, 0, 0] and ets["tc_tsa"] == ["ets"] * 3 + ["strict"] * 5
    assert parse.dcb_text("dcbx", sample("dcb_dcbx-1.txt")) == {"dcbx": "host"}
    assert parse.dcb_text("buffer", sample("dcb_buffer-1.txt"))["buffer_total"] == 1222 * 1024


def test_conformance_files() -> None:
    assert parse.port_buffer_size(sample("sysfs_qos-1.txt")) == 262016
    assert parse.pause(sample("ethtool_a-1.txt")) == "rx"
