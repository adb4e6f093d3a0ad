# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from lab.hardware import ethtool
from lab.hardware.state import Event
from tests.unit.lab.hardware.test_model import FIRST, RAIL, make


@pytest.fixture
def door(tmp_path: Path) -> ethtool.Door:
    return ethtool.Door(make(tmp_path, RAIL)[0])


def port(door: ethtool.Door) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(door.show())["ports"][RAIL.name]
    return found


def ask(door: ethtool.Door, **values: Any) -> None:
    door.store(json.dumps({"netdev": RAIL.name, **values}))


def test_defaults(door: ethtool.Door) -> None:
    shown = port(door)
    assert shown["rings"] == {"rx": 1024, "tx": 1024}
    assert shown["channels"] == {"combined": 63}
    assert shown["pause"] == {"autoneg": False, "rx": True, "tx": True}
    assert (shown["driver"], shown["bus"]) == ("mlx5_core", FIRST.pci)
    assert shown["firmware"] == f"{FIRST.fw_ver} ({FIRST.board_id})"


def test_values_stay_until_the_driver_goes(door: ethtool.Door) -> None:
    ask(door, rings={"rx": 8192})
    ask(door, channels={"combined": 8})
    ask(door, pause={"rx": False, "tx": False})
    shown = port(door)
    assert (shown["rings"], shown["channels"]["combined"], shown["pause"]["rx"]) == ({"rx": 8192, "tx": 1024}, 8, False)
    door.model.state.happen(Event.DRIVER_RELOAD)
    assert port(door)["rings"] == {"rx": 1024, "tx": 1024}
    assert port(door)["pause"]["rx"] is True


def test_a_ring_is_rounded_up(door: ethtool.Door) -> None:
    ask(door, rings={"rx": 1000, "tx": 65})
    assert port(door)["rings"] == {"rx": 1024, "tx": 128}


@pytest.mark.parametrize(("values", "words"), [
    ({"rings": {"rx": 8193}}, "requested ring size exceeds maximum"), ({"rings": {"tx": 63}}, ""),
    ({"rings": {"rx-jumbo": 1}}, "requested ring size exceeds maximum"),
    ({"channels": {"combined": 64}}, "requested channel count exceeds maximum (offset 32)"),
    ({"channels": {"rx": 1}}, "requested channel count exceeds maximum (offset 32)"),
    ({"channels": {"combined": 0}}, "requested channel counts would result in no RX or TX channel being configured"),
    ({"pause": {"autoneg": True}}, ""), ({"other": {}}, ""),
])
def test_refused(door: ethtool.Door, values: dict[str, Any], words: str) -> None:
    before = port(door)
    with pytest.raises(OSError) as caught:
        ask(door, **values)
    assert caught.value.errno == errno.EINVAL
    assert json.loads(door.show())["refused"] == words
    assert port(door) == before


@pytest.mark.parametrize(("text", "code"), [
    ("garbage", errno.EINVAL), ("[]", errno.EINVAL), ("{}", errno.EINVAL),
    ('{"netdev": "eth9", "rings": {"rx": 64}}', errno.ENODEV),
])
def test_what_is_no_request(door: ethtool.Door, text: str, code: int) -> None:
    with pytest.raises(OSError) as caught:
        door.store(text)
    assert caught.value.errno == code


def test_a_port_that_is_away(door: ethtool.Door) -> None:
    door.model.state.driver = False
    assert json.loads(door.show())["ports"] == {}
    with pytest.raises(OSError) as caught:
        ask(door, rings={"rx": 64})
    assert caught.value.errno == errno.ENODEV
