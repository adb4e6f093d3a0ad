# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""IMEX on one node, and the domain as its daemons see it. Facts: driver-slurm-k8s.md 1.8 and 4.3."""
from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import dataclass, field

from .._gpu.model import Package
from .._host.errors import Problem
from .._idle.model import Policy

Owner = t.Literal["host", "dra", "dra_over_host"]
OWNERS: tuple[Owner, ...] = ("host", "dra", "dra_over_host")
State = t.Literal["started", "configured", "stopped", "resumed", "ready"]
STATES: tuple[State, ...] = ("started", "configured", "stopped", "resumed", "ready")

UNIT = "nvidia-imex.service"
PACKAGE = "nvidia-imex"
DAEMON = "nvidia-imex"
FOLDER = "/etc/nvidia-imex"
NODES_FILE = f"{FOLDER}/nodes_config.cfg"
CONFIG_FILE = f"{FOLDER}/config.cfg"
CHANNELS = "/dev/nvidia-caps-imex-channels"
NODES_KEY = "IMEX_NODE_CONFIG_FILE"
# Without the command service nvidia-imex-ctl has nobody to ask [1.8].
OWN_KEYS = {NODES_KEY: NODES_FILE, "IMEX_CMD_ENABLED": "1"}
RUNNING = ("active", "activating", "reloading")


@dataclass(frozen=True)
class Request:
    """``nodes`` is the whole domain; ``may_join``: the others that run have this list, or none runs."""

    domain: str = ""
    nodes: tuple[str, ...] = ()
    owner: Owner = "host"
    state: State = "started"
    config: dict[str, str] = field(default_factory=dict)
    may_join: bool = False
    disruption_policy: Policy = "if_idle"
    wait_seconds: int = 60

    @property
    def nodes_text(self) -> str:
        return "".join(f"{node}\n" for node in self.nodes)

    @property
    def keys(self) -> dict[str, str]:
        return {**OWN_KEYS, **self.config}

    @property
    def on_host(self) -> bool:
        """Whether the daemon is that of the host's unit."""
        return self.owner != "dra"

    def of_domain(self) -> str:
        return f"nvlink_domain {self.domain}" if self.domain else "the domain"


@dataclass(frozen=True)
class Unit:
    """As systemd has it; ``started_at`` is when it was last started, in seconds since 1970."""

    load: str = "not-found"
    active: str = "inactive"
    enabled: str = ""
    started_at: float = 0.0

    @property
    def is_running(self) -> bool:
        return self.active in RUNNING

    @property
    def is_masked(self) -> bool:
        return self.load == "masked" or self.enabled.startswith("masked")

    @property
    def is_enabled(self) -> bool:
        return self.enabled == "enabled"


@dataclass(frozen=True)
class File:
    """``text`` None: not there. ``changed_at`` in seconds since 1970."""

    text: str | None = None
    changed_at: int = 0
    mode: int = 0o644


@dataclass(frozen=True)
class Node:
    """One read. ``strays`` are daemons that are not the unit's, in words, such as the DRA driver's own."""

    unit: Unit = Unit()
    nodes_file: File = File()
    config_file: File = File()
    addresses: frozenset[str] = frozenset()
    driver: str | None = None
    packages: tuple[Package, ...] = ()
    strays: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Member:
    """A node of the domain as nvidia-imex-ctl shows it; ``version`` None: this build does not tell it."""

    address: str
    status: str
    version: str | None = None
    host_name: str = ""


@dataclass(frozen=True)
class Domain:
    """``members`` by index, ``links`` by (from, to): "connected", or what is wrong in words."""

    members: dict[int, Member] = field(default_factory=dict)
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    state: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"state": self.state, "links": len(self.links),
                "links_connected": sum(word == CONNECTED for word in self.links.values()),
                "nodes": [{"address": one.address, "status": one.status, "version": one.version}
                          for _index, one in sorted(self.members.items())]}


CONNECTED = "connected"
VERSION_MISMATCH = "version mismatch, communication disabled"
MAP_MISMATCH = "node map mismatch, communication disabled"


def plain_address(text: str) -> str | None:
    """An IP address in its one spelling; None for a name, and for leading zeros, which Python before 3.9.5 accepts."""
    bare = text.strip()
    try:
        plain = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return None if plain.version == 4 and str(plain) != bare else str(plain)


def some(names: t.Sequence[str], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
