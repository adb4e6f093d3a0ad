# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The commands that give links their MTU, state, addresses and routes back.

Raises ValueError for text that is not iproute2's.
"""
from __future__ import annotations

import json
import typing as t

Command = tuple[str, ...]


def _objects(text: str) -> list[dict[str, t.Any]]:
    data = json.loads(text.strip() or "[]")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError("not a JSON list of objects")
    return [item for item in data if item]


def links(text: str, netdevs: t.Collection[str]) -> list[Command]:
    """Of ``ip -d -j addr show``; a link that is down stays as it is."""
    found: list[Command] = []
    try:
        for item in _objects(text):
            if item["ifname"] not in netdevs:
                continue
            link = ("ip", "link", "set", "dev", str(item["ifname"]))
            found.append((*link, "mtu", str(int(item["mtu"]))))
            if "UP" in item.get("flags", []):
                found.append((*link, "up"))
            found += [("ip", "addr", "replace", f"{entry['local']}/{entry['prefixlen']}", "dev", str(item["ifname"]))
                      for entry in item.get("addr_info", []) if entry.get("scope") == "global"]
    except (KeyError, TypeError) as error:
        raise ValueError(f"an entry without {error}") from error
    return found


def routes(text: str, version: int, netdevs: t.Collection[str]) -> list[Command]:
    """Of ``ip -j -4 route show table all``; those to the port's own subnet come with its address."""
    found: list[Command] = []
    for item in _objects(text):
        if item.get("dev") not in netdevs or item.get("type", "unicast") != "unicast" or \
                item.get("protocol") in ("kernel", "ra"):
            continue
        words = ["ip", f"-{version}", "route", "replace", str(item.get("dst", "default"))]
        for key, word in (("gateway", "via"), ("dev", "dev"), ("table", "table"), ("prefsrc", "src"),
                          ("metric", "metric")):
            words += [word, str(item[key])] if key in item else []
        found.append(tuple(words))
    return found
