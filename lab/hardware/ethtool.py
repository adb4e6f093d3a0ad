# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ethtool asks an mlx5 port beyond its netdev: rings, channels, global pause, driver.

The stand-in of ethtool reads one JSON object from the file /dev/infiniband/ethtool, with the ports by the present name
of their netdev, and writes one to it to change a port: {"netdev": NAME, "rings": {"rx": 1024}}. What the driver or the
kernel refuses is refused here, with the errno; the words for it are in the next answer. The values are in the driver's
memory (state.py): lost when it goes.
"""
from __future__ import annotations

import errno
import json
from collections.abc import Callable
from typing import Any

from lab.hardware.model import Node as Model
from lab.hardware.nodes import Attr, fail
from lab.hardware.spec import RailSpec

# Linux mlx5 en/params.h: MLX5E_PARAMS_DEFAULT_LOG_SQ_SIZE 0xa, MAXIMUM 0xd, MINIMUM 0x6; the RQ's are alike.
RING_DEFAULT, RING_MOST, RING_LEAST = 1 << 0xA, 1 << 0xD, 1 << 6
# One channel per completion vector; 63 with the firmware's default of 64 vectors (not from a capture).
CHANNELS_MOST = 63
DEFAULTS: dict[str, dict[str, Any]] = {
    "rings": {"rx": RING_DEFAULT, "tx": RING_DEFAULT},
    "channels": {"combined": CHANNELS_MOST},
    "pause": {"autoneg": False, "rx": True, "tx": True},  # on by default (mlx5-roce 4.7)
}
MAXIMUMS = {"rings": {"rx": RING_MOST, "tx": RING_MOST}, "channels": {"combined": CHANNELS_MOST}}


class Refused(Exception):
    """EINVAL with the words of the kernel's extended answer; some have none."""


def rings(values: dict[str, int]) -> dict[str, int]:
    """Too many: the kernel [net/ethtool/rings.c]; too few, and rounding: mlx5 [en_ethtool.c, set_ringparam]."""
    if set(values) - {"rx", "tx"} or max(values.values(), default=0) > RING_MOST:
        raise Refused("requested ring size exceeds maximum")
    if values.get("tx", RING_LEAST) < RING_LEAST:
        raise Refused("")
    return {name: 1 << max(1, (value - 1).bit_length()) for name, value in values.items()}


def channels(values: dict[str, int]) -> dict[str, int]:
    """mlx5 has combined channels only; the kernel compares with maximums [net/ethtool/channels.c; tried on veth]."""
    if any(values[name] for name in set(values) - {"combined"}) or values.get("combined", 1) > CHANNELS_MOST:
        raise Refused("requested channel count exceeds maximum (offset 32)")
    if values.get("combined", 1) < 1:
        raise Refused("requested channel counts would result in no RX or TX channel being configured")
    return {name: value for name, value in values.items() if name == "combined"}


def pause(values: dict[str, bool]) -> dict[str, bool]:
    """``autoneg on`` is EINVAL (mlx5-roce 4.7)."""
    if values.get("autoneg"):
        raise Refused("")
    return {name: values[name] for name in ("rx", "tx") if name in values}


CHECKS: dict[str, Callable[[Any], dict[str, Any]]] = {"rings": rings, "channels": channels, "pause": pause}


class Door:
    """The file's two directions."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.refused = ""

    def _values(self, rail: RailSpec, kind: str) -> dict[str, Any]:
        memory = self.model.state.runtime
        return {name: json.loads(memory.get((rail.rail, f"{kind} {name}"), json.dumps(value)))
                for name, value in DEFAULTS[kind].items()}

    def _port(self, rail: RailSpec) -> dict[str, Any]:
        return {"driver": "mlx5_core", "firmware": f"{rail.fw_ver} ({rail.board_id})", "bus": rail.pci,
                **{kind: self._values(rail, kind) for kind in DEFAULTS}, "maximums": MAXIMUMS}

    def show(self) -> str:
        bound = [rail for rail in self.model.spec.rails if self.model.state.bound(rail.rail)]
        ports = {name: self._port(rail) for rail in bound if (name := self.model.netdev(rail.rail))}
        return json.dumps({"ports": ports, "refused": self.refused})

    def store(self, text: str) -> None:
        self.refused = ""
        try:
            request = json.loads(text)
            rail = self.model.rail_of_name(request.pop("netdev"))
            ((kind, values),) = request.items()
            check = CHECKS[kind]
        except (ValueError, KeyError, AttributeError, TypeError):
            raise fail(errno.EINVAL) from None
        if rail is None or not self.model.state.bound(rail):
            raise fail(errno.ENODEV)
        try:
            for name, value in check(values).items():
                self.model.state.runtime[(rail, f"{kind} {name}")] = json.dumps(value)
        except Refused as error:
            self.refused = str(error)
            raise fail(errno.EINVAL) from None


def attribute(model: Model) -> Attr:
    door = Door(model)
    return Attr(door.show, door.store)
