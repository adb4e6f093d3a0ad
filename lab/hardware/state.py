# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hardware of a host remembers beside the kernel's netdevs, and which event ends it.

| state | driver reload | firmware reset | warm reboot | cold reboot |
|---|---|---|---|---|
| driver's memory (``lifespan``, ``node_desc``) | lost | lost | lost | lost |
| PCI registers (MaxReadReq; "lost on reset", mlx5-roce 5.6) | kept | lost | lost | lost |
| port registers (trust; read from hardware on load, mlx5-roce 4.3) | kept | lost | kept on BMC-powered boards | lost |
| next-boot parameters (mlx5-roce 4.8, 5.5) | kept | loaded | loaded, not on BMC-powered boards | loaded |
"""
from __future__ import annotations

import enum
import functools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lab.hardware import pci
from lab.hardware.gpus import Gpus
from lab.hardware.parameters import IB, PARAMETERS, Card
from lab.hardware.spec import NodeSpec


class Event(str, enum.Enum):
    DRIVER_RELOAD = "driver-reload"
    FIRMWARE_RESET = "firmware-reset"
    WARM = "warm"
    COLD = "cold"


class StateError(ValueError):
    """A change that the hardware cannot take; the message names what there is."""


# name -> values, the first one is the default
REGISTERS: dict[str, tuple[str, ...]] = {
    "QPTS": ("pcp", "dscp"),  # priority trust state (mlx5-roce 4.3)
    "DCBX": ("os", "fw"),  # who negotiates; kept until a firmware reset (mlx5-roce 4.3)
    "PFCC": tuple(map(str, range(256))),  # bit n: PFC on priority n (mlx5-roce 4.3)
}
ROCE_DISABLE = "1"
# What may be otherwise with the card in a slot, or with its links: field of RailSpec -> its kind. Facts, in mlx5-roce:
# another card 5.1, 5.6; a link of another rate 1.1 (`200 Gb/sec (4X HDR)`); PCIe x8 6.3; older firmware 5.1.
CHANGES: dict[str, type] = {
    "device": str, "fw_ver": str, "board_id": str, "card_type": str, "card_name": str, "vpi": bool,
    "rate_gbps": int, "lanes": int, "lane_speed": str, "trained_speed": str, "trained_width": str,
    "firmware_lacks": list,
}
# The driver, which decides what files there are (mlx5-roce 1.9).
STACKS = ("inbox", "ofed")
OFED_VERSION = "25.10-1.7.1"
GONE, FOUND = "gone", "found"


@dataclass(frozen=True)
class Driver:
    """mlx5_core and the modules above it; the kernel's own has no version (host-setup 2.3)."""

    stack: str
    version: str = ""
    srcversion: str = ""


def _checked(kind: str, known: Iterable[str], name: str, good: Callable[[], bool], wanted: Callable[[], str],
             value: str) -> None:
    if name not in known:
        raise StateError(f"{kind} {name!r} is not known; there are: {', '.join(known)}")
    if not good():
        raise StateError(f"{kind} {name}: got {value!r}, wanted {wanted()}")


class State:
    """Of one host. ``path`` is where what outlives a boot is kept; without one nothing does."""

    def __init__(self, spec: NodeSpec, path: Path | None = None) -> None:
        self.shape = spec
        self.spec = spec
        # Grows with each change of the hardware: whoever made something of the specification makes it anew.
        self.generation = 0
        self.path = path
        self.driver = True
        self.runtime: dict[tuple[int, str], str] = {}
        self.config = [pci.function_config(rail) for rail in spec.rails]
        kept: dict[str, Any] = {}
        if path is not None and path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
        self.registers: list[dict[str, str]] = kept.get("registers") or [{} for _rail in spec.rails]
        self.current: list[dict[str, str]] = kept.get("current") or [{} for _rail in spec.rails]
        self.gpus = Gpus(spec.gpus, spec.host_name, os.uname().release, kept.get("gpus"))
        self.next: list[dict[str, str]] = kept.get("next") or [{} for _rail in spec.rails]
        # Which driver a load takes: the disk tells, if the daemon knows the host's, or the lab has said it.
        self.disk: Callable[[], Driver | None] = lambda: Driver(STACKS[0])
        self.said: str | None = kept.get("said")
        self.found: Driver | None = Driver(**kept["driver"]) if kept.get("driver") else Driver(STACKS[0])
        # Modules above the stack's, by what they use; gone with the boot.
        self.holders: dict[str, Sequence[str]] = {}
        # Writes since the daemon's start, by rail: what a program should not have written shows here.
        self.pfc_writes = [0] * len(spec.rails)
        # Virtual functions by rail; they go with the driver.
        self.vfs: dict[int, int] = {}
        # How the cards differ from the class's shape.
        self.changes: dict[int, dict[str, Any]] = {int(rail): had for rail, had in kept.get("changes", {}).items()}
        self._reshape()
        # Functions that are off the bus: GONE, or FOUND (well again, but the bus was not scanned since).
        self.off_bus: dict[int, str] = {int(rail): how for rail, how in kept.get("off_bus", {}).items()}

    def save(self) -> None:
        if self.path is None:
            return
        text = json.dumps({"registers": self.registers, "current": self.current, "next": self.next,
                           "off_bus": self.off_bus, "gpus": self.gpus.condition, "said": self.said,
                           "changes": self.changes,
                           "driver": asdict(self.found) if self.found else None}, indent=1)
        temporary = self.path.with_name(f".{self.path.name}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.path)

    def happen(self, event: Event) -> None:
        """Take the event's toll; see the table above. The driver is loaded anew, from the host's disk."""
        self.runtime.clear()
        self.vfs.clear()
        self.generation += 1
        if self.said is None:
            self.found = self.disk()
        if event in (Event.WARM, Event.COLD):
            self.holders.clear()
            self.gpus.boot()
        if event is not Event.DRIVER_RELOAD:
            for rail, config in zip(self.spec.rails, self.config):
                config[:] = pci.function_config(rail)
            if event is not Event.WARM or not self.spec.bmc_powered:
                for registers, current, following in zip(self.registers, self.current, self.next):
                    registers.clear()
                    current.update(following)
        self.off_bus = {rail: how for rail, how in self.off_bus.items() if how == GONE}
        self.save()

    def _rail(self, rail: Any) -> int:
        if not isinstance(rail, int) or not 0 <= rail < len(self.spec.rails):
            raise StateError(f"rail {rail!r}: {self.spec.host_name} has 0 to {len(self.spec.rails) - 1}")
        return rail

    def set_register(self, rail: int, name: str, value: str) -> None:
        _checked("register", REGISTERS, name, lambda: value in REGISTERS[name],
                 lambda: f"one of {', '.join(REGISTERS[name])}", value)
        self.registers[self._rail(rail)][name] = value
        self.save()

    def set_parameter(self, rail: int, name: str, value: str) -> None:
        """For the next boot (mlxconfig set), whether or not the firmware shows it now."""
        _checked("parameter", PARAMETERS, name, lambda: value.isdigit() and PARAMETERS[name].takes(int(value)),
                 lambda: PARAMETERS[name].range(), value)
        self.next[self._rail(rail)][name] = value
        self.save()

    def load_parameter(self, rail: int, name: str, value: str | None) -> None:
        """As delivered: the value is loaded and stays so. None: as the class's cards are delivered."""
        for values in (self.current, self.next):
            values[self._rail(rail)].pop(name, None)
        if value is not None:
            self.set_parameter(rail, name, value)
            self.current[rail][name] = value
        self.save()

    def change(self, rail: int, fields: dict[str, Any]) -> None:
        """Another card in the slot of ``rail``, or links that trained otherwise; no field: the class's card again."""
        if not isinstance(fields, dict):
            raise StateError(f"fields: got {fields!r}, wanted an object")
        for name, value in fields.items():
            kind = CHANGES.get(name, object)
            _checked("field", CHANGES, name, functools.partial(isinstance, value, kind),
                     functools.partial(str, kind.__name__), repr(value))
        self.changes.pop(self._rail(rail), None)
        if fields:
            self.changes[rail] = dict(fields)
        self._reshape()
        self.save()

    def _reshape(self) -> None:
        rails = tuple(replace(rail, **self.changes.get(rail.rail, {})) for rail in self.shape.rails)
        self.spec = replace(self.shape, rails=rails)
        for rail, config in zip(rails, self.config):
            # Registers that were written stay: the card did not lose its power.
            control = bytes(config[pci.DEVICE_CONTROL:pci.DEVICE_CONTROL + 2])
            config[:] = pci.function_config(rail)
            config[pci.DEVICE_CONTROL:pci.DEVICE_CONTROL + 2] = control
        self.generation += 1

    def most_vfs(self, rail: int) -> int:
        """Of a card whose loaded parameters allow any (mlx5-roce 5.1: SRIOV_EN and NUM_OF_VFS)."""
        card = self.card(rail)
        return min(card.current("NUM_OF_VFS"), pci.VFS_MOST) if card.current("SRIOV_EN") else 0

    def set_vfs(self, rail: int, count: int) -> None:
        self.vfs.pop(rail, None)
        if count:
            self.vfs[rail] = count
        self.generation += 1

    def set_stack(self, name: str) -> None:
        """Another driver is installed and loaded; the old one's memory is gone."""
        if name not in STACKS:
            raise StateError(f"stack: got {name!r}, wanted one of {', '.join(STACKS)}")
        self.said = name
        self.found = Driver(name, OFED_VERSION if name == "ofed" else "")
        self.runtime.clear()
        self.save()

    def hold(self, name: str, uses: Sequence[str]) -> None:
        """A module comes and uses modules of the stack, such as nvidia_peermem ib_uverbs; with none it goes."""
        if not isinstance(uses, list) or not all(isinstance(used, str) for used in uses):
            raise StateError(f"uses: got {uses!r}, wanted a list of modules")
        self.holders.pop(name, None)
        if uses:
            self.holders[name] = tuple(uses)

    @property
    def loaded(self) -> Driver | None:
        return self.found if self.driver else None

    def load(self, wanted: bool) -> None:
        """Load or unload the driver; without a file for it nothing is loaded (FaaSMem#1)."""
        self.driver = wanted and self.found is not None

    def ofed(self) -> bool:
        return self.found is not None and self.found.stack == "ofed"

    def lose(self, rail: int) -> None:
        self.off_bus[self._rail(rail)] = GONE
        self.save()

    def find(self, rail: int) -> None:
        """The function is well again; the next scan of the bus (driver reload or boot) shows it."""
        if self._rail(rail) in self.off_bus:
            self.off_bus[rail] = FOUND
            self.save()

    def on_bus(self, rail: int) -> bool:
        return rail not in self.off_bus

    def bound(self, rail: int) -> bool:
        """Whether the driver has the function, so that it has a netdev."""
        return self.driver and self.on_bus(rail)

    def card(self, rail: int) -> Card:
        """Firmware parameters of a rail's card."""
        return Card(self.spec.rails[rail], self.current[rail], self.next[rail])

    def link_layer(self, rail: int) -> str:
        """As the loaded link type of a VPI card says (mlx5-roce 5.1); other cards are Ethernet."""
        vpi = self.spec.rails[rail].vpi
        return "InfiniBand" if vpi and self.card(rail).current("LINK_TYPE_P1") == IB else "Ethernet"

    def rdma(self, rail: int) -> bool:
        """Whether there is an RDMA device: none with RoCE disabled in firmware (mlx5-roce 5.1)."""
        return self.bound(rail) and self.current[rail].get("ROCE_CONTROL") != ROCE_DISABLE

    def set_gpu(self, gpu: int, condition: str) -> None:
        self.gpus.set_condition(gpu, condition)
        self.save()

    def show(self) -> list[dict[str, Any]]:
        """Everything, for the control door."""
        return [{
            "rail": rail.rail, "pci": rail.pci, "interface": rail.netdev, "on_bus": self.on_bus(rail.rail),
            "bound": self.bound(rail.rail), "pfc_writes": self.pfc_writes[rail.rail],
            "changes": self.changes.get(rail.rail, {}), "vfs": self.vfs.get(rail.rail, 0),
            "registers": {name: self.registers[rail.rail].get(name, values[0]) for name, values in REGISTERS.items()},
            "parameters": {name: {key: str(value[key]) for key in ("default", "current", "next")}
                           for name, value in self.card(rail.rail).show().items()},
        } for rail in self.spec.rails]
