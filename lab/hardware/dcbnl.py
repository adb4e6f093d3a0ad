# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS of a port as dcbnl shows it: what the mlx5 driver answers to ``dcb`` and ``mlnx_qos`` (mlx5-roce 4.3).

Trust, DSCP map, PFC and the DCBX mode are registers of the port; ETS, buffers, cable length and rates are the driver's
memory (mlx5-roce 4.8). A host reaches this through ``/dev/dcbnl/IF``, which stands for the netlink socket: a read is
the state as JSON, a write is one change, refused with the kernel's errno.
"""
from __future__ import annotations

import copy
import errno
import json
from collections.abc import Callable
from typing import Any

from lab.hardware.nodes import fail
from lab.hardware.spec import RailSpec
from lab.hardware.state import State

EIGHT = range(8)
DSCPS = 64
CABLE_METRES = 7  # mlx5-roce 4.3
# Sample mlnx_qos-3.
BUFFER_TOTAL = 2044224
BUFFERS = {"prio_buffer": [1] * 8, "buffer_size": [0, 187200, 0, 0, 0, 0, 0, 0]}
CELL = 128  # sample sysfs_qos-1: the spare buffer
# On driver load: prio 0 -> tc 1, prio 1 -> tc 0, others same, tsa vendor (mlx5-roce 4.3).
ETS = {"prio_tc": [1, 0, 2, 3, 4, 5, 6, 7], "tc_tsa": ["vendor"] * 8, "tc_bw": [100] * 8}
FULL = 100  # what getets says of a class that is not ets [K en_dcbnl.c, mlx5e_dcbnl_ieee_getets]
FIRMWARE = "fw"


class Dcbnl:
    """One port. ``toggle`` takes the link down and up."""

    def __init__(self, state: State, rail: RailSpec, mtu: Callable[[], int], toggle: Callable[[], None]) -> None:
        self.state, self.rail, self.mtu, self.toggle = state, rail, mtu, toggle

    # -- what is kept where ---------------------------------------------------------------------

    def _memory(self, name: str, default: Any) -> Any:
        text = self.state.runtime.get((self.rail.rail, name))
        return copy.deepcopy(default) if text is None else json.loads(text)

    def _remember(self, name: str, value: Any) -> None:
        self.state.runtime[(self.rail.rail, name)] = json.dumps(value)

    def _register(self, name: str, default: str) -> str:
        return self.state.registers[self.rail.rail].get(name, default)

    def _set_register(self, name: str, value: str) -> None:
        self.state.registers[self.rail.rail][name] = value
        self.state.save()

    def _map(self) -> list[int]:
        return [int(digit) for digit in self._register("QPDPM", "".join(str(dscp >> 3) for dscp in range(DSCPS)))]

    def _listed(self) -> list[int]:
        """DSCPs with an entry: all of them after a driver load with trust dscp, none with pcp (mlx5-roce 4.3)."""
        if self._register("QPTS", "pcp") == "pcp":
            return []
        return list(self._memory("dscp_listed", list(range(DSCPS))))

    # -- reading --------------------------------------------------------------------------------

    def show(self) -> dict[str, Any]:
        pfc, priorities = int(self._register("PFCC", "0")), self._map()
        host = self._register("DCBX", "os") != FIRMWARE
        return {
            "dcbx": [*(["host"] if host else []), "cee", "ieee"],
            "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": self._memory("cable_length", CABLE_METRES),
                    "prio_pfc": [bool(pfc >> priority & 1) for priority in EIGHT]},
            "ets": {"willing": False, "ets_cap": 8, "cbs": False, **self._memory("ets", ETS)},
            "app": [[dscp, priorities[dscp]] for dscp in self._listed()],
            "buffer": {**self._memory("buffer", BUFFERS), "total_size": BUFFER_TOTAL},
            "maxrate": self._memory("maxrate", [0] * 8),
        }

    def text(self) -> str:
        return json.dumps(self.show())

    # -- writing --------------------------------------------------------------------------------

    def store(self, text: str) -> None:
        """One change, ``{"set": GROUP, ...}``; what the kernel would refuse is an OSError."""
        try:
            request: dict[str, Any] = json.loads(text)
            kind = request.pop("set")
            handler = self._handlers()[kind]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise fail(errno.EINVAL) from None
        if kind != "dcbx" and self._register("DCBX", "os") == FIRMWARE:
            return  # taken, and overruled at once by what the firmware negotiated (mlx5-roce 4.3)
        try:
            handler(**request)
        except TypeError:
            raise fail(errno.EINVAL) from None

    def _handlers(self) -> dict[str, Callable[..., None]]:
        return {"pfc": self._pfc, "ets": self._ets, "app": self._app, "unapp": self._unapp, "dcbx": self._dcbx,
                "buffer": self._buffer, "maxrate": self._maxrate}

    def _pfc(self, prio_pfc: list[bool], delay: int) -> None:
        """A new bitmap toggles the link; a cable length out of 0 < d < 1000 is ignored (mlx5-roce 4.3)."""
        self.state.pfc_writes[self.rail.rail] += 1
        bitmap = sum(1 << priority for priority in EIGHT if prio_pfc[priority])
        if self._memory("buffer", None) is not None:
            self._check_buffers(bitmap, self._memory("buffer", BUFFERS))
        if 0 < delay < 1000:
            self._remember("cable_length", delay)
        if str(bitmap) != self._register("PFCC", "0"):
            self._set_register("PFCC", str(bitmap))
            self.toggle()

    def _ets(self, prio_tc: list[int], tc_tsa: list[str], tc_bw: list[int]) -> None:
        """Shares must be 100 together if any class is ets (mlx5-roce 4.3)."""
        shares = [share for share, kind in zip(tc_bw, tc_tsa) if kind == "ets"]
        if (shares and sum(shares) != FULL) or any(tc not in EIGHT for tc in prio_tc):
            raise fail(errno.EINVAL)
        kept = [share if kind == "ets" else FULL for share, kind in zip(tc_bw, tc_tsa)]
        self._remember("ets", {"prio_tc": prio_tc, "tc_tsa": tc_tsa, "tc_bw": kept})

    def _app(self, entries: list[list[int]]) -> None:
        """The first entry flips trust to dscp; an entry replaces that DSCP's old one (mlx5-roce 4.3)."""
        for dscp, priority in entries:
            if not (0 <= dscp < DSCPS and priority in EIGHT):
                raise fail(errno.EINVAL)
            listed, priorities = self._listed(), self._map()
            priorities[dscp] = priority
            self._remember("dscp_listed", sorted({*listed, dscp}))
            self._set_register("QPTS", "dscp")
            self._set_register("QPDPM", "".join(map(str, priorities)))

    def _unapp(self, entries: list[list[int]]) -> None:
        """A DSCP without an entry has priority 0 in hardware; without any, trust is pcp (mlx5-roce 4.3)."""
        for dscp, priority in entries:
            listed, priorities = self._listed(), self._map()
            if dscp not in listed or priorities[dscp] != priority:
                raise fail(errno.ENOENT)
            priorities[dscp] = 0
            listed.remove(dscp)
            self._remember("dscp_listed", listed)
            self._set_register("QPDPM", "".join(map(str, priorities)))
            if not listed:
                self._set_register("QPTS", "pcp")

    def _dcbx(self, flags: list[str]) -> None:
        """No flag: the firmware's. Else it must be the host's (mlx5-roce 4.3)."""
        if flags and "host" not in flags:
            raise fail(errno.EINVAL)
        self._set_register("DCBX", "os" if flags else FIRMWARE)

    def _buffer(self, prio_buffer: list[int], buffer_size: list[int]) -> None:
        wanted = {"prio_buffer": prio_buffer, "buffer_size": buffer_size}
        self._check_buffers(int(self._register("PFCC", "0")), wanted)
        self._remember("buffer", wanted)

    def _check_buffers(self, bitmap: int, buffers: dict[str, list[int]]) -> None:
        """mlx5-roce 4.3: too small for a lossless one ENOMEM, 0 for one EINVAL, more than there is EINVAL."""
        metres = self._memory("cable_length", CABLE_METRES)
        xoff = (301 + 2.16 * metres) * max(40, self.rail.rate_gbps) + 2.72 * self.mtu()
        if sum(buffers["buffer_size"]) > BUFFER_TOTAL:
            raise fail(errno.EINVAL)
        for priority in EIGHT:
            size = buffers["buffer_size"][buffers["prio_buffer"][priority]]
            if bitmap >> priority & 1 and size < xoff + max(self.mtu(), 9216) + CELL:
                raise fail(errno.ENOMEM if size else errno.EINVAL)

    def _maxrate(self, tc_maxrate: list[int]) -> None:
        self._remember("maxrate", tc_maxrate)
