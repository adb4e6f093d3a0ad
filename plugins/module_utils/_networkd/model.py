# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What systemd-networkd has, and what it will set at the next boot."""
from __future__ import annotations

from dataclasses import dataclass, field

from .._host.errors import Problem

# Highest priority first [systemd.network(5)].
DIRECTORIES = (
    "/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network",
)
DROPIN_NAME = "50-aidc-mtu.conf"
# What rail_network writes: a drop-in, or a file where there is none, or a profile of NetworkManager.
RAIL_DROPIN = "60-aidc-rail.conf"
RAIL_FILE = "05-aidc-rail"
HEADER = "# Written by aidc.gpu_cluster.mlx5_port, which rewrites it: do not edit."
# Stands while a file of ours may not have been read by the running networkd; /run is empty after a boot.
PENDING_FILE = "/run/aidc/networkd-reload.pending"
RELOAD = ("networkctl", "reload")
# networkd raises a smaller value where IPv6 is on, and the kernel turns IPv6 off below it [RFC 8200; systemd
# networkd-setlink, link_adjust_mtu].
IPV6_MIN_MTU_BYTES = 1280


@dataclass(frozen=True)
class ConfigFile:
    path: str
    text: str


@dataclass(frozen=True)
class Link:
    """One link as ``networkctl --json=short list`` shows it."""

    name: str
    admin_state: str = ""
    operational_state: str = ""
    network_file: str | None = None


@dataclass(frozen=True)
class Saved:
    """The .network file of a link and its drop-ins, in the order in which networkd reads them."""

    network_file: str
    files: tuple[ConfigFile, ...] = ()


@dataclass(frozen=True)
class Networkd:
    """``state`` is what ``systemctl is-active`` says; ``saved`` has one entry per .network file in use."""

    state: str = "inactive"
    links: dict[str, Link] = field(default_factory=dict)
    saved: dict[str, Saved] = field(default_factory=dict)
    reload_pending: bool = False
    problem: Problem | None = None
    # A saved file that this user may not read; the problem says so, too.
    unreadable: str | None = None

    @property
    def active(self) -> bool:
        return self.state == "active"

    def of(self, netdev: str | None) -> Saved | None:
        """Files that govern the link, or None where networkd has none for it."""
        link = self.links.get(netdev or "")
        return self.saved.get(link.network_file) if link is not None and link.network_file else None

    def governed_by(self, network_file: str) -> list[str]:
        return sorted(name for name, link in self.links.items() if link.network_file == network_file)
