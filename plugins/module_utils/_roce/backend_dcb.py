# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""``dcb`` of iproute2 (5.11 and later): the inbox way to a port's dcbnl state."""
from __future__ import annotations

import os
import tempfile
import typing as t

from .._host.errors import Problem
from .._host.machine import Machine
from . import parse
from .backend import Backend, Command, map_changes, wanted_map
from .model import State

_KINDS = {"pfc": {"pfc", "cable_length"}, "ets": {"ets"}, "app": {"trust", "dscp_map"}, "dcbx": {"dcbx"},
          "buffer": {"buffer"}}
_WANTED = "the state of each port"


def _pairs(values: t.Sequence[t.Any]) -> list[str]:
    return [f"{number}:{value}" for number, value in enumerate(values)]


class Dcb(Backend):
    name = "dcb"
    package = "iproute2 (5.11 or later)"

    def read(self, machine: Machine, netdevs: t.Sequence[str], groups: t.AbstractSet[str],
             ) -> tuple[dict[str, State], list[Problem]]:
        # Trust and map decide each other, and an owner that is not the host decides all.
        kinds = [kind for kind, own in _KINDS.items() if kind in ("app", "dcbx") or own & groups]
        asked = [(netdev, kind) for netdev in netdevs for kind in kinds]
        if not asked:
            return {}, []
        found, problem = self._batch(machine, asked)
        if problem is None:
            return found, []
        if problem.got.startswith("output"):
            return self._one_by_one(machine, asked)
        return {}, [problem]

    def _batch(self, machine: Machine, asked: list[tuple[str, str]]) -> tuple[dict[str, State], Problem | None]:
        """One process for all ports: a node of eight would need more than thirty."""
        descriptor, name = tempfile.mkstemp(prefix="aidc-dcb-")
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as stream:
                stream.write("".join(f"{kind} show dev {netdev}\n" for netdev, kind in asked))
            result = machine.tool("dcb", "-j", "-b", name)
        finally:
            os.unlink(name)
        if result.state == "missing":
            return {}, self.missing()
        if result.state != "ok":
            return {}, Problem("dcb", result.why(), _WANTED, self._hint(result.stderr))
        found: dict[str, State] = {netdev: {} for netdev, _kind in asked}
        try:
            documents = parse.json_documents(result.stdout)
            if len(documents) != len(asked):
                raise ValueError(f"{len(documents)} answers to {len(asked)} questions")
            for (netdev, kind), document in zip(asked, documents):
                found[netdev].update(parse.dcb_json(kind, document))
        except (ValueError, KeyError, TypeError) as error:
            return {}, Problem("dcb", result.unreadable(ValueError(error)), _WANTED)
        return found, None

    def _one_by_one(self, machine: Machine, asked: list[tuple[str, str]]) -> tuple[dict[str, State], list[Problem]]:
        """The documented text, for a dcb whose JSON is another than ours."""
        found: dict[str, State] = {netdev: {} for netdev, _kind in asked}
        for netdev, kind in asked:
            result = machine.tool("dcb", "-N", kind, "show", "dev", netdev)
            what = f"dcb {kind} of {netdev}"
            if result.state != "ok":
                return {}, [Problem(what, result.why(), _WANTED, self._hint(result.stderr))]
            try:
                found[netdev].update(parse.dcb_text(kind, result.stdout))
            except ValueError as error:
                return {}, [Problem(what, result.unreadable(error), _WANTED, "is it the program of iproute2?")]
        return found, []

    @staticmethod
    def _hint(stderr: str) -> str:
        if "not supported" in stderr:
            # No dcbnl operations: VF, sub-function, or firmware without them [mlx5 en_dcbnl.c].
            return "a port has no dcbnl: is it a VF, a sub-function, or a driver without DCB?"
        return "run as root, and look at dmesg"

    def cannot(self, group: str, value: t.Any) -> str | None:
        if group == "dcbx" and value == "firmware":
            return "dcb can make the host the owner, but not the firmware; mlnx_qos -d fw can"
        return None

    def commands(self, netdev: str, group: str, have: State, want: State) -> list[Command]:
        value = want[group]
        if group == "trust" and value == "dscp":
            # The first entry flips trust. All 64: a DSCP without an entry gets priority 0 [mlx5 en_dcbnl.c].
            entries = [f"{dscp}:{priority}" for dscp, priority in enumerate(wanted_map(want))]
            return [Command(("dcb", "app", "add", "dev", netdev, "dscp-prio", *entries), ("trust", "dscp_map"), "link")]
        if group == "trust":
            return [Command(("dcb", "app", "flush", "dev", netdev, "dscp-prio"), ("trust",), "link")]
        if group == "dscp_map":
            # "add" and not "replace": the driver drops the old entry itself, and "replace" then fails with exit 0.
            entries = [f"{dscp}:{priority}" for dscp, priority in map_changes(have, value)]
            return [Command(("dcb", "app", "add", "dev", netdev, "dscp-prio", *entries), ("dscp_map",))]
        return [Command(("dcb", *self._set(netdev, group, value)), (group,), "link" if group == "pfc" else "none")]

    @staticmethod
    def _set(netdev: str, group: str, value: t.Any) -> tuple[str, ...]:
        if group == "ets":
            return ("ets", "set", "dev", netdev, "prio-tc", *_pairs(value["prio_tc"]), "tc-tsa",
                    *_pairs(value["tc_tsa"]), "tc-bw", *_pairs(value["tc_bw"]))
        if group == "buffer":
            return ("buffer", "set", "dev", netdev, "prio-buffer", *_pairs(value["prio_buffer"]), "buffer-size",
                    *_pairs(value["buffer_size"]))
        if group == "pfc":
            return ("pfc", "set", "dev", netdev, "prio-pfc", "all:off", *(f"{priority}:on" for priority in value))
        if group == "cable_length":
            return ("pfc", "set", "dev", netdev, "delay", str(value))
        return ("dcbx", "set", "dev", netdev, "host", "ieee")
