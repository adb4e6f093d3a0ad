# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what iproute2 and NetworkManager print. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import ipaddress
import json
import typing as t

from .model import Address, Connection, Proof, Running, route_text, rule_text

# iproute2 prints it for a lifetime without end.
_FOREVER = 2**32 - 1


def _objects(text: str) -> list[dict[str, t.Any]]:
    data = json.loads(text.strip() or "[]")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError("not a JSON list of objects")
    return [item for item in data if item]


def _address(item: dict[str, t.Any]) -> Address | None:
    if item.get("scope") != "global" or "local" not in item:
        return None
    lifetime = item.get("valid_life_time", _FOREVER)
    return Address(f"{item['local']}/{item['prefixlen']}", bool(item.get("dynamic")) or lifetime != _FOREVER)


def addresses(text: str) -> dict[str, Running]:
    """Links of ``ip -j addr show`` (with or without ``-d``)."""
    found = {}
    try:
        for item in _objects(text):
            flags = item.get("flags", [])
            own = [_address(entry) for entry in item.get("addr_info", []) if entry]
            found[str(item["ifname"])] = Running("UP" in flags, "LOWER_UP" in flags, int(item.get("mtu", 0)) or None,
                                                 tuple(address for address in own if address))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an entry without {error}") from error
    return found


def _source(item: dict[str, t.Any]) -> str:
    length = item.get("srclen")
    return f"{item.get('src', 'all')}/{length}" if length is not None else str(item.get("src", "all"))


def rules(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Rules of ``ip -j rule`` as texts, and all priorities."""
    try:
        items = [(_source(item), str(item.get("table", "")), int(item["priority"])) for item in _objects(text)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"a rule without {error}") from error
    texts = tuple(rule_text(source, int(table), priority) for source, table, priority in items if table.isdigit())
    return texts, tuple(priority for _source, _table, priority in items)


def _destination(text: str, version: int) -> str:
    if text == "default":
        return "0.0.0.0/0" if version == 4 else "::/0"
    return str(ipaddress.ip_network(text))


def routes(text: str, version: int) -> tuple[tuple[str, str], ...]:
    """(device, route as text) of ``ip -j route show table all`` for tables with a number."""
    found = []
    try:
        for item in _objects(text):
            table = str(item.get("table", ""))
            if table.isdigit() and item.get("type", "unicast") == "unicast" and "dev" in item:
                destination = _destination(item["dst"], version)
                found.append((str(item["dev"]), route_text(destination, item.get("gateway"), int(table))))
    except (KeyError, TypeError) as error:
        raise ValueError(f"a route without {error}") from error
    return tuple(found)


def route_get(text: str) -> Proof:
    items = _objects(text)
    if len(items) != 1:
        raise ValueError(f"{len(items)} routes, not one")
    return Proof(items[0].get("gateway"), items[0].get("dev"))


def _fields(line: str) -> list[str]:
    """Fields of a line of ``nmcli -t``, which puts a backslash before a colon or a backslash of a value."""
    fields = [""]
    rest = iter(line)
    for character in rest:
        if character == ":":
            fields.append("")
        else:
            fields[-1] += next(rest, "") if character == "\\" else character
    return fields


def _terse_lines(text: str, fields: int) -> list[list[str]]:
    found = []
    for line in text.splitlines():
        parts = _fields(line)
        if len(parts) != fields:
            raise ValueError(f"a line with {len(parts)} fields, not {fields}")
        found.append(parts)
    return found


def devices(text: str) -> dict[str, tuple[str, str]]:
    """netdev -> (state, active profile) of ``nmcli -t -f DEVICE,TYPE,STATE,CONNECTION device``."""
    return {name: (state, profile) for name, _kind, state, profile in _terse_lines(text, 4)}


def connections(text: str) -> tuple[Connection, ...]:
    """Profiles of ``nmcli -t -f NAME,UUID,TYPE,DEVICE,FILENAME connection show``."""
    return tuple(Connection(name, uuid, device, path) for name, uuid, _kind, device, path in _terse_lines(text, 5))


def keyfile(text: str) -> dict[str, dict[str, str]]:
    """Groups of a keyfile of NetworkManager [GLib's key files]."""
    found: dict[str, dict[str, str]] = {}
    group: dict[str, str] = {}
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            group = found.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith("#"):
            key, _equals, value = line.partition("=")
            group[key.strip()] = value.strip()
    return found
