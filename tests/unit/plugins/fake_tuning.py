# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rings, channels, pause, config space and admin state of a FakeNode's rails, behind ethtool, setpci and ip."""
from __future__ import annotations

import json
import struct
import typing as t
from dataclasses import dataclass, field

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import FakeNode, failed, ok

NO_JSON = "ethtool: bad command line argument(s)\nJSON output not available for this subcommand\n"
CAP_AT = 0x48  # not where the web's 68.w looks


def config(read_request_code: int, at: int = CAP_AT) -> bytes:
    """Configuration space with two capabilities, PCI Express last."""
    data = bytearray(4096)
    data[0x06], data[0x34] = 0x10, 0x40
    data[0x40:0x42] = bytes([0x01, at])
    data[at:at + 2] = bytes([0x10, 0])
    struct.pack_into("<H", data, at + 8, read_request_code << 12 | 0x810)
    return bytes(data)


@dataclass
class Tuned:
    """State of the rails by netdev; ``json_letters`` are the options that this ethtool has JSON for."""

    node: FakeNode
    json_letters: str = "ga"
    state: dict[str, dict[str, int | bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rail in self.node.rails:
            self.state[rail.netdev] = {"rx": 1024, "tx": 1024, "combined": 63, "pause rx": True, "pause tx": True}
            path = self.node.root / f"sys/bus/pci/devices/{rail.pci}/config"
            path.write_bytes(config(2))
            for word in ("up", "down"):
                self.node.override[("ip", "link", "set", "dev", rail.netdev, word)] = self.admin
        self.node.override.update({("ethtool",): self.ethtool, ("setpci",): self.setpci})

    def admin(self, argv: tuple[str, ...]) -> Result:
        self.node.put(f"/sys/class/net/{argv[4]}/flags", "0x1003\n" if argv[5] == "up" else "0x1002\n")
        return ok()

    def setpci(self, argv: tuple[str, ...]) -> Result:
        if argv[1] == "--version":
            return ok("setpci version 3.13.0\n")
        assert argv[3].startswith("CAP_EXP+08.w=") and argv[3].endswith(":f000")
        code = int(argv[3][len("CAP_EXP+08.w="):].split(":")[0], 16) >> 12
        (self.node.root / f"sys/bus/pci/devices/{argv[2]}/config").write_bytes(config(code))
        return ok()

    def ethtool(self, argv: tuple[str, ...]) -> Result:
        as_json = argv[1] == "--json"
        letter, netdev, *rest = argv[2:] if as_json else argv[1:]
        state = self.state[netdev]
        if letter.isupper() or letter[1].isupper():
            prefix = "pause " if letter == "-A" else ""
            for word, value in zip(rest[::2], rest[1::2]):
                state[prefix + word] = {"on": True, "off": False}.get(value) if prefix else int(value)  # type: ignore[assignment]
            return ok()
        if as_json and letter[1] not in self.json_letters:
            return failed(1, NO_JSON)
        return ok(_as_json(letter[1], netdev, state) if as_json else _as_text(letter[1], netdev, state))


def _as_json(letter: str, netdev: str, state: dict[str, t.Any]) -> str:
    data: dict[str, t.Any] = {"ifname": netdev}
    if letter == "g":
        data.update({"rx-max": 8192, "tx-max": 8192, "rx": state["rx"], "tx": state["tx"], "tx-push": False})
    elif letter == "l":
        data.update({"combined-max": 63, "combined": state["combined"]})
    else:
        data.update({"autonegotiate": False, "rx": state["pause rx"], "tx": state["pause tx"]})
    return json.dumps([data])


def _as_text(letter: str, netdev: str, state: dict[str, t.Any]) -> str:
    """The layouts of ethtool 6.1 (rings, channels) and of sample ethtool_a-1 (pause)."""
    if letter == "g":
        most = "RX:\t\t8192\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t8192\n"
        now = f"RX:\t\t{state['rx']}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t{state['tx']}\nTX Push:\toff\n"
        return f"Ring parameters for {netdev}:\nPre-set maximums:\n{most}Current hardware settings:\n{now}"
    if letter == "l":
        head = "RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\n"
        return (f"Channel parameters for {netdev}:\nPre-set maximums:\n{head}Combined:\t63\n"
                f"Current hardware settings:\n{head}Combined:\t{state['combined']}\n")
    word = {True: "on", False: "off"}
    return (f"Pause parameters for {netdev}:\nAutonegotiate:\toff\nRX:\t\t{word[state['pause rx']]}\n"
            f"TX:\t\t{word[state['pause tx']]}\n\n")
