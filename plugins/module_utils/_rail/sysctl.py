# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""ARP and source check of the rails in sysctl.d, per interface. Pure."""
from __future__ import annotations

import typing as t

from .model import HEADER

PATH = "/etc/sysctl.d/90-aidc-rails.conf"
FILE_MODE = 0o644
_START, _ROOT = "net/ipv4/conf/", "/proc/sys/"


def proc_path(netdev: str, key: str) -> str:
    return f"{_ROOT}{_START}{netdev}/{key}"


def text(values: t.Mapping[str, t.Mapping[str, int]]) -> str:
    """With slashes: the name of a VLAN has a dot [sysctl.d(5)]. udev sets them again for a port that comes late."""
    lines = [f"{_START}{netdev}/{key} = {value}\n" for netdev in sorted(values)
             for key, value in sorted(values[netdev].items())]
    return f"{HEADER}\n{''.join(lines)}"


def read(content: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in content.splitlines():
        name, _equals, value = (part.strip() for part in line.partition("="))
        if name.startswith(_START) and value.isdigit():
            netdev, _slash, key = name[len(_START):].rpartition("/")
            found.setdefault(netdev, {})[key] = int(value)
    return found


def effective(own: t.Mapping[str, int], every: t.Mapping[str, int]) -> dict[str, int]:
    """The kernel uses the larger one of `all` and the interface [Linux ip-sysctl.rst]."""
    return {key: max(value, every.get(key, 0)) for key, value in own.items()}
