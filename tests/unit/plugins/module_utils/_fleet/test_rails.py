# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import typing as t
from datetime import datetime, timezone

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import rails
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.rails import ShapeError
from hypothesis import given
from hypothesis import strategies as st

A, B = "0000:03:00.0", "0002:03:00.0"
RAILS: list[dict[str, t.Any]] = [{"rail": 0, "pci": A}, {"rail": 1, "pci": B}]
PORT = {"state": "ACTIVE", "netdev": "rail0", "mtu_bytes": 4200, "saved_mtu_bytes": 4200, "rdma_mtu_bytes": 4096,
        "gids": [{"index": 2, "family": "ipv4", "type": "IB/RoCE v1", "ndev": "rail0", "address": "198.51.100.1"},
                 {"index": 3, "family": "ipv4", "type": "RoCE v2", "ndev": "other", "address": "192.0.2.9"},
                 {"index": 5, "family": "ipv4", "type": "RoCE v2", "ndev": "rail0", "address": "198.51.100.1"}]}
DATA: dict[str, t.Any] = {"devices": [{"pci": A, "rail": 0, "rdma_device": "mlx5_0", "ports": [PORT]},
                    {"pci": B, "rail": 1, "rdma_device": "rocep3s0f0", "ports": [{**PORT, "gids": []}]},
                    {"pci": "0000:99:00.0", "rail": None, "rdma_device": None, "ports": []}],
        "problems": [{"object": "ibv_devinfo", "got": "x", "wanted": "y", "hint": "z"}, "odd", {}]}


# -- definition -----------------------------------------------------------------------------------

def test_sound_rails() -> None:
    assert rails.rail_problems(RAILS, 4200, 4096) == []
    assert rails.rail_problems([{**RAILS[0], "mtu_bytes": 9000}], 4200, 4096) == []
    assert rails.rail_problems([RAILS[1], RAILS[0]], 2200, 2048) == []


@pytest.mark.parametrize(("value", "mtu", "rdma", "message"), [
    ([], 4200, 4096, "mlx5_port_rails: got [], wanted a list"),
    (None, 4200, 4096, "mlx5_port_rails: got None"),
    (RAILS, 4200, 4000, "mlx5_port_expected_rdma_mtu_bytes: got 4000, wanted one of 256, 512, 1024, 2048, 4096"),
    (RAILS, 1500, 4096, "mlx5_port_mtu_bytes: got 1500, which gives RDMA MTU 1024; wanted the netdev MTU for RDMA "
                        "MTU 4096, which is 4192 or somewhat more"),
    (RAILS, 4200, 1024, "mlx5_port_mtu_bytes: got 4200, which gives RDMA MTU 4096"),
    (RAILS, "4200", 4096, "mlx5_port_mtu_bytes: got '4200', wanted 352 to 65535 bytes"),
    (RAILS, 100, 256, "mlx5_port_mtu_bytes: got 100"),
    (RAILS, True, 256, "mlx5_port_mtu_bytes: got True"),
    ([RAILS[0], "x"], 4200, 4096, "mlx5_port_rails[1]: got 'x', wanted a mapping"),
    ([{"rail": 0, "pci": "03:00.0"}], 4200, 4096, "mlx5_port_rails[0].pci: got '03:00.0'"),
    ([{"rail": 0, "pci": "0000:C1:00.0"}], 4200, 4096, "in lower case"),
    ([{"rail": 0}], 4200, 4096, "mlx5_port_rails[0].pci: got None"),
    ([{"rail": 0, "pci": A, "mtu": 1}], 4200, 4096, "mlx5_port_rails[0]: got the unknown key mtu"),
    ([{"rail": 0, "pci": A, "mtu_bytes": 1500}], 4200, 4096, "mlx5_port_rails[0].mtu_bytes: got 1500"),
    ([RAILS[0], {"rail": 2, "pci": B}], 4200, 4096, "got the rail numbers [0, 2], wanted each of 0 to 1 once"),
    ([{"rail": "0", "pci": A}], 4200, 4096, "got the rail numbers ['0']"),
    ([RAILS[0], {"rail": 1, "pci": A}], 4200, 4096, f"got pci {A} more than once"),
])
def test_unsound_rails(value: t.Any, mtu: t.Any, rdma: t.Any, message: str) -> None:
    assert any(message in problem for problem in rails.rail_problems(value, mtu, rdma))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["rail", "pci", "mtu_bytes", "data", "devices", "ports", "gids", "h1"]), inner,
                        max_size=4), max_leaves=12)


@given(JSON, JSON, JSON)
def test_rail_problems_takes_anything(value: t.Any, mtu: t.Any, rdma: t.Any) -> None:
    assert all(isinstance(problem, str) for problem in rails.rail_problems(value, mtu, rdma))


@given(JSON, JSON)
def test_table_and_findings_take_anything_or_say_where_it_is_wrong(records: t.Any, hosts: t.Any) -> None:
    for call in (lambda: rails.rail_table(records, hosts, NOW), lambda: rails.rail_table({"h1": records}, ["h1"], NOW),
                 lambda: rails.rail_findings(records, "h1", RAILS, 4200, 4096)):
        try:
            assert all(isinstance(line, str) for line in call())
        except ShapeError as error:
            assert str(error)


# -- findings -------------------------------------------------------------------------------------

def test_a_host_as_wanted() -> None:
    assert rails.rail_findings(DATA, "h1", RAILS, 4200, 4096) == []


def test_findings_name_host_rail_got_and_wanted() -> None:
    data = copy.deepcopy(DATA)
    data["devices"][1]["ports"][0].update(
        {"state": "DOWN", "mtu_bytes": 1500, "saved_mtu_bytes": None, "rdma_mtu_bytes": 1024})
    name = f"h1 rail 1 ({B})"
    assert rails.rail_findings(data, "h1", RAILS, 4200, 4096) == [
        f"{name}: netdev MTU: got 1500, wanted 4200",
        f"{name}: saved MTU: got None, wanted 4200",
        f"{name}: RDMA MTU: got 1024, wanted 4096",
        f"{name}: port state: got DOWN, wanted ACTIVE",
        "h1: ibv_devinfo: got x, wanted y (z)",
        "h1: -: got -, wanted - (-)",
    ]
    assert len(rails.rail_findings(data, "h1", RAILS, 4200, 4096, check_saved=False)) == 5


def test_a_rail_that_is_not_there() -> None:
    found = rails.rail_findings({"devices": []}, "h1", RAILS[:1], 4200, 4096)
    assert found == [f"h1 rail 0 ({A}): got no mlx5 device, wanted one; there is: none"]


def test_findings_refuse_what_is_no_result() -> None:
    for data, message in ((None, "mlx5_info.devices: got NoneType"), ({"devices": [1]}, r"devices\[0\]: got int"),
                          ({"devices": [{"pci": A, "ports": 1}]}, r"devices\[0\]\.ports: got int")):
        with pytest.raises(ShapeError, match=message):
            rails.rail_findings(data, "h1", RAILS, 4200, 4096)
    with pytest.raises(ShapeError, match="mlx5_port_rails: got None"):
        rails.rail_findings(DATA, "h1", None, 4200, 4096)


# -- table ----------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 8, 12, 0, 9, tzinfo=timezone.utc)
FRESH = {"time": "2026-03-08T12:00:00Z"}


def test_table() -> None:
    records: dict[str, t.Any] = {
        "gb200-1": {"data": DATA, **FRESH}, "bare": {"data": {"devices": []}, **FRESH}, "other": {}}
    lines = rails.rail_table(records, ["gb200-1", "bare", "h9"], NOW)
    assert lines == [
        "HOST     RAIL  PCI           NETDEV  RDMA        STATE    MTU  RDMA-MTU  ROCE-V2-GID          INDEX  AGE",
        "gb200-1     0  0000:03:00.0  rail0   mlx5_0      ACTIVE  4200      4096  ::ffff:198.51.100.1      5   9s",
        "gb200-1     1  0002:03:00.0  rail0   rocep3s0f0  ACTIVE  4200      4096  -                        -   9s",
        "bare        -  no rails      -       -           -          -         -  -                        -   9s",
        "h9          -  no record     -       -           -          -         -  -                        -    -",
        "h9: no record: no run has met this host yet",
    ]


@pytest.mark.parametrize(("time", "age", "old"), [
    ("2026-03-08T11:58:09Z", "2min", False), ("2026-03-07T12:00:09Z", "24h", False),
    ("2026-03-07T12:00:08Z", "24h", True),
    ("2026-03-01T12:00:00Z", "7d", True), (None, "?", True), ("yesterday", "?", True),
    # A clock that was set back: not old.
    ("2026-03-08T12:00:30Z", "0s", False),
])
def test_an_old_record_is_called_old(time: t.Any, age: str, old: bool) -> None:
    lines = rails.rail_table({"h1": {"data": DATA, "time": time}}, ["h1"], NOW)
    assert lines[1].split()[-1] == age
    assert [line.startswith("h1: old record: ") for line in lines[3:]] == ([True] if old else [])
    # With a limit of a year only a record without a time is old.
    assert len(rails.rail_table({"h1": {"data": DATA, "time": time}}, ["h1"], NOW, 8760)[3:]) == (age == "?")


@pytest.mark.parametrize(("records", "hosts", "message"), [
    ([], [], "records: got list"),
    ({}, "h1", "hosts: got str"),
    ({}, [1], "hosts: got list"),
    ({"h1": 1}, ["h1"], r"records\['h1'\]: got int"),
    ({"h1": {}}, ["h1"], r"records\['h1'\]\.data\.devices: got NoneType"),
])
def test_table_of_something_else(records: t.Any, hosts: t.Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        rails.rail_table(records, hosts, NOW)


def test_rows_are_in_rail_order() -> None:
    data = {"devices": [{**DATA["devices"][1], "rail": 0}, {**DATA["devices"][0], "rail": 1}]}
    assert [line.split()[1] for line in rails.rail_table({"h": {"data": data, **FRESH}}, ["h"], NOW)[1:]] == ["0", "1"]
