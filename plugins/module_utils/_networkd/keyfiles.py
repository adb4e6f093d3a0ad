# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The MTU that rail_network saved with NetworkManager, in the shape of networkd's files.

Where networkd does not run, only such a profile of ours counts as a saved MTU.
"""
from __future__ import annotations

from .._host.files import read_text
from .._host.machine import Machine
from .model import ConfigFile, Link, Saved

FOLDER = "/etc/NetworkManager/system-connections"
PATTERN = "aidc-rail*.nmconnection"


def translate(text: str) -> tuple[str, str]:
    """The profile's interface, and its MTU as a .network file has it."""
    section, netdev, mtu = "", "", ""
    for raw in text.splitlines():
        line = raw.strip()
        key, _equals, value = line.partition("=")
        if line.startswith("["):
            section = line
        elif (section, key) == ("[connection]", "interface-name"):
            netdev = value.strip()
        elif (section, key) == ("[ethernet]", "mtu"):
            mtu = value.strip()
    return netdev, f"[Link]\nMTUBytes={mtu}\n"


def read(machine: Machine, netdevs: list[str]) -> tuple[dict[str, Link], dict[str, Saved]]:
    links, saved = {}, {}
    folder = machine.path(FOLDER)
    for file in sorted(folder.glob(PATTERN)) if folder.is_dir() else ():
        path = f"{FOLDER}/{file.name}"
        netdev, text = translate(read_text(file) or "")
        if netdev in netdevs:
            links[netdev] = Link(netdev, network_file=path)
            saved[path] = Saved(path, (ConfigFile(path, text),))
    return links, saved
