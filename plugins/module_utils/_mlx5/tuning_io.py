# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read the settings of ports beside their MTU."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._host.machine import Machine
from .._host.runner import Result
from . import ethtool, pcie
from .tuning import Have, Value, letters

_PACKAGE = "install the package ethtool"
_HINTS = {"timeout": "the driver or firmware does not answer; look at dmesg", "missing": _PACKAGE}


class Ethtool:
    """Asks ethtool, and remembers which of its options have no JSON."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.text_only: set[str] = set()

    def _run(self, letter: str, netdev: str) -> tuple[Result, bool]:
        """The answer, and whether JSON was asked for."""
        if letter not in self.text_only:
            result = self.machine.tool("ethtool", "--json", f"-{letter}", netdev)
            if result.state != "failed" or not ethtool.no_json(result.stderr + result.stdout):
                return result, True
            self.text_only.add(letter)
        return self.machine.tool("ethtool", f"-{letter}", netdev), False

    def ask(self, letter: str, netdev: str) -> tuple[dict[str, t.Any], dict[str, int], Problem | None]:
        """(values, maximums, problem) of one option."""
        result, as_json = self._run(letter, netdev)
        what = f"ethtool -{letter} {netdev}"
        if result.state != "ok":
            hint = _HINTS.get(result.state, "a VF or an old driver may not have it; leave the option out")
            return {}, {}, Problem(what, result.why(), "its output", hint)
        try:
            values, most = (ethtool.from_json if as_json else ethtool.from_text)(letter, result.stdout)
        except (ValueError, TypeError) as error:
            bad = error if isinstance(error, ValueError) else ValueError(str(error))
            return {}, {}, Problem(what, result.unreadable(bad), "its output", "run it by hand")
        return dict(values), most, None


def _read_request(machine: Machine, pci: str) -> tuple[dict[str, Value], Problem | None]:
    path = f"/sys/bus/pci/devices/{pci}/config"
    try:
        return {"max_read_request_bytes": pcie.max_read_request_bytes(machine.path(path).read_bytes())}, None
    except OSError as error:
        got = error.strerror or str(error)
    except ValueError as error:
        got = str(error)
    return {}, Problem(path, got, "a PCI Express capability", "run as root")


def _setpci(machine: Machine) -> Problem | None:
    """That the tool is there must be known before the first write."""
    result = machine.tool("setpci", "--version")
    return Problem("setpci", result.why(), "the program", "install the package pciutils") \
        if result.state == "missing" else None


def gather(machine: Machine, wanted: t.Mapping[str, tuple[str, str | None, t.Mapping[str, Value]]]) -> dict[str, Have]:
    """By PCI address; ``wanted`` has netdev, admin state as it is, and the settings that are asked for."""
    tool, found = Ethtool(machine), {}
    missing = _setpci(machine) if any("max_read_request_bytes" in want[2] for want in wanted.values()) else None
    for pci, (netdev, admin_state, settings) in wanted.items():
        values: dict[str, Value] = {"admin_state": admin_state} if admin_state else {}
        most: dict[str, int] = {}
        problems: list[Problem | None] = []
        for letter in letters(settings):
            here, limits, problem = tool.ask(letter, netdev)
            values.update(here)
            most.update(limits)
            problems.append(problem)
        if "max_read_request_bytes" in settings:
            here, problem = _read_request(machine, pci)
            values.update(here)
            problems += [problem, missing]
        found[pci] = Have(values, most, tuple(item for item in problems if item is not None))
    return found
