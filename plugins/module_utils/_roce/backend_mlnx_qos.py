# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""``mlnx_qos`` of mlnx-tools (DOCA-OFED, also packaged by distributions)."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._host.machine import Machine
from . import parse
from .backend import Backend, Command, map_changes
from .model import PRIORITIES, State

_HINTS = {"timeout": "the driver or firmware does not answer; look at dmesg", "failed": "run as root, look at dmesg"}


def _comma(values: t.Iterable[t.Any]) -> str:
    return ",".join(map(str, values))


class MlnxQos(Backend):
    name = "mlnx_qos"
    package = "mlnx-tools"

    def read(self, machine: Machine, netdevs: t.Sequence[str], groups: t.AbstractSet[str],
             ) -> tuple[dict[str, State], list[Problem]]:
        found = {}
        for netdev in netdevs:
            # -a: classes that no priority uses, too.
            result = machine.tool("mlnx_qos", "-i", netdev, "-a")
            if result.state == "missing":
                return {}, [self.missing()]
            what, wanted = f"mlnx_qos of {netdev}", "the state of the port"
            if result.state != "ok":
                return {}, [Problem(what, result.why(), wanted, _HINTS[result.state])]
            try:
                found[netdev] = parse.mlnx_qos(result.stdout)
            except ValueError as error:
                return {}, [Problem(what, result.unreadable(error), wanted, "is it the program of mlnx-tools?")]
        return found, []

    def cannot(self, group: str, value: t.Any) -> str | None:
        return None

    def commands(self, netdev: str, group: str, have: State, want: State) -> list[Command]:
        value = want[group]
        call = ("mlnx_qos", "-i", netdev)
        if group == "trust":
            # Adds the 64 entries of the driver's own map; what differs from it is the next group's.
            return [Command((*call, "--trust", value), ("trust",), "link")]
        if group == "dscp_map":
            changes = [word for dscp, priority in map_changes(have, value)
                       for word in ("--dscp2prio", f"set,{dscp},{priority}")]
            return [Command((*call, *changes), ("dscp_map",))]
        return [Command((*call, *self._set(group, value)), (group,), "link" if group == "pfc" else "none")]

    @staticmethod
    def _set(group: str, value: t.Any) -> tuple[str, ...]:
        if group == "ets":
            return ("-p", _comma(value["prio_tc"]), "-s", _comma(value["tc_tsa"]), "-t", _comma(value["tc_bw"]))
        if group == "buffer":
            return ("--prio2buffer", _comma(value["prio_buffer"]), "--buffer_size", _comma(value["buffer_size"]))
        if group == "pfc":
            return ("--pfc", _comma(int(priority in value) for priority in range(PRIORITIES)))
        if group == "cable_length":
            return ("--cable_len", str(value))
        return ("-d", "os" if value == "host" else "fw")
