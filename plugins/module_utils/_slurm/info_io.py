# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of slurm_info: ask what can be asked as this user, and say what could not."""
from __future__ import annotations

import functools
import hashlib
import typing as t
from pathlib import Path

from .._host.errors import Problem
from .._host.machine import Machine
from .._host.runner import Result, Runner, run
from . import info_parse, node_parse
from .node_io import HINTS
from .node_model import SlurmNode

PARTS = ("versions", "daemons", "controllers", "config", "partitions", "reservations", "nodes")
_DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "munge")
_PROGRAMS = {"scontrol": ("scontrol", "--version"), "slurmctld": ("slurmctld", "-V"), "slurmd": ("slurmd", "-V"),
             "slurmdbd": ("slurmdbd", "-V")}
_FOLDERS = ("/etc/slurm", "/run/slurm/conf")
# 10,000 nodes have about 2.5 KB each as JSON.
_LIMIT_BYTES = 64 * 1024 * 1024
Data = dict[str, t.Any]
T = t.TypeVar("T")


def large_runner() -> Runner:
    return functools.partial(run, stdout_limit_bytes=_LIMIT_BYTES)


class _Reader:
    """Asks tools and keeps why one did not answer."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.missing: list[Problem] = []

    def ask(self, parser: t.Callable[[str], T], *argv: str) -> T | None:
        result = self.machine.tool(*argv)
        return result.parsed(parser, self.missing, "an answer", HINTS.get(result.state, HINTS["failed"]))

    def versions(self) -> Data:
        """Of the programs that are installed here; one that is not installed is no problem on this host."""
        found: Data = {}
        for name, argv in _PROGRAMS.items():
            result = self.machine.tool(*argv)
            found[name] = None
            if result.state != "missing":
                found[name] = result.parsed(info_parse.version, self.missing, "its version", "is it Slurm's own?")
        return found

    def daemons(self) -> Data:
        return self.ask(info_parse.units, "systemctl", "show", "-p", "Id,LoadState,ActiveState,UnitFileState",
                        *(f"{name}.service" for name in _DAEMONS)) or {}

    def nodes(self, only: t.Collection[str]) -> list[SlurmNode]:
        """All nodes, as JSON where scontrol has that."""
        result: Result = self.machine.tool("scontrol", "--json", "show", "node")
        if result.state == "ok" and result.stdout.lstrip().startswith("{"):
            found = result.parsed(node_parse.json_nodes, [], "", "")
        else:
            found = None
        if found is None and result.state not in ("missing", "timeout"):
            found = self.ask(node_parse.text_nodes, "scontrol", "-o", "show", "node")
        elif found is None:
            self.missing.append(Problem("scontrol show node", result.why(), "an answer", HINTS[result.state]))
        return [node for node in found or [] if not only or node.name in only]

    def files(self) -> Data:
        """SHA-256 of each file of the configuration, also of those that came from slurmctld (configless)."""
        found: Data = {}
        for folder in _FOLDERS:
            for path in sorted(self.machine.path(folder).glob("*")):
                if path.suffix in (".conf", ".yaml") and path.is_file():
                    found[f"{folder}/{path.name}"] = self._digest(folder, path)
        return found

    def _digest(self, folder: str, path: Path) -> str | None:
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            self.missing.append(Problem(f"{folder}/{path.name}", error.strerror or str(error), "a readable file",
                                        "run as root or as SlurmUser"))
            return None


def _config(reader: _Reader) -> Data:
    values = reader.ask(info_parse.config, "scontrol", "show", "config") or {}
    return {"config": values, "config_hash": info_parse.digest(values) if values else None,
            "config_files": reader.files()}


def _summary(nodes: t.Sequence[SlurmNode]) -> Data:
    """Numbers of nodes, and their releases of slurmd."""
    states = [node.state for node in nodes]
    return {
        "total": len(nodes), "usable": sum(state.usable for state in states),
        "drained": sum(state.drained for state in states), "draining": sum(state.draining for state in states),
        "down": sum(state.down for state in states), "invalid": sum(state.invalid for state in states),
        "versions": sorted({node.version for node in nodes if node.version}),
    }


def read(machine: Machine, parts: t.Sequence[str] = PARTS, only: t.Collection[str] = ()) -> Data:
    """What slurm_info returns; never raises for what a tool does."""
    reader = _Reader(machine)
    found: Data = {"installed": machine.tool("scontrol", "--version").state != "missing"}
    if "versions" in parts:
        found["versions"] = reader.versions()
    if "daemons" in parts:
        found["daemons"] = reader.daemons()
    if not found["installed"]:
        reader.missing.append(Problem("scontrol", "not installed", "Slurm's tools", HINTS["missing"]))
    else:
        found.update(_cluster(reader, parts, only))
    return {**found, "missing": [problem.as_dict() for problem in reader.missing]}


def _cluster(reader: _Reader, parts: t.Sequence[str], only: t.Collection[str]) -> Data:
    found: Data = {}
    if "controllers" in parts:
        found["controllers"] = reader.ask(info_parse.pings, "scontrol", "ping") or []
    if "config" in parts:
        found.update(_config(reader))
    if "partitions" in parts:
        found["partitions"] = reader.ask(info_parse.partitions, "scontrol", "-o", "show", "partition") or []
    if "reservations" in parts:
        found["reservations"] = reader.ask(info_parse.reservations, "scontrol", "-o", "show", "reservation") or []
    if "nodes" in parts:
        nodes = reader.nodes(only)
        found.update(nodes=[node.details() for node in nodes], summary=_summary(nodes))
    return found
