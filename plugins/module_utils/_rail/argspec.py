# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the module rail_network, and the request that they make."""
from __future__ import annotations

import ipaddress
import typing as t

from .._host.errors import AidcError, Problem
from .._idle.argspec import disruption
from .model import OWNERS, SYSCTL_KEYS, Request, Want

_DEFAULTS = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}
TABLE_START, PRIORITY_START = 101, 1001


def rail_network() -> dict[str, t.Any]:
    rail = {
        "rail": {"type": "int", "required": True},
        "pci": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "mtu_bytes": {"type": "int", "default": 4200},
        "gateway": {"type": "str"},
        "destinations": {"type": "list", "elements": "str", "default": []},
        "table": {"type": "int"},
        "priority": {"type": "int"},
    }
    return {
        "rails": {"type": "list", "elements": "dict", "required": True, "options": rail},
        "owner": {"type": "str", "choices": ["auto", *OWNERS], "default": "auto"},
        **{key: {"type": "int", "default": _DEFAULTS[key]} for key in SYSCTL_KEYS},
        "persistent": {"type": "bool", "default": True},
        **disruption(),
        "tool_timeout_seconds": {"type": "int", "default": 10},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def _interface(where: str, text: str, bad: list[Problem]) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface | None:
    try:
        if "/" not in text:
            raise ValueError("no length")
        return ipaddress.ip_interface(text)
    except ValueError:
        bad.append(Problem(where, repr(text), "an address with its length such as 192.0.2.10/24"))
        return None


def _networks(where: str, texts: t.Sequence[str], version: int, bad: list[Problem]) -> tuple[str, ...]:
    found = []
    for text in texts:
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            bad.append(Problem(where, repr(text), "a network such as 198.51.100.0/24"))
            continue
        if network.version != version:
            bad.append(Problem(where, text, f"a network of IPv{version}, as the rail's address"))
        found.append(str(network))
    return tuple(found)


def _want(entry: t.Mapping[str, t.Any], bad: list[Problem]) -> Want | None:
    where = f"rail {entry['rail']}"
    interface = _interface(f"{where}: address", entry["address"].strip(), bad)
    if interface is None:
        return None
    gateway = entry.get("gateway") or None
    everything = "0.0.0.0/0" if interface.version == 4 else "::/0"
    texts = entry.get("destinations") or ([everything] if gateway else [])
    destinations = _networks(f"{where}: destinations", texts, interface.version, bad)
    try:
        gateway = str(ipaddress.ip_address(gateway)) if gateway else None
    except ValueError:
        bad.append(Problem(f"{where}: gateway", repr(gateway), "an address"))
        return None
    table, priority = entry.get("table"), entry.get("priority")
    # sysfs writes PCI addresses in lower case.
    return Want(entry["rail"], entry["pci"].strip().lower(), str(interface), entry["mtu_bytes"], gateway, destinations,
                TABLE_START + entry["rail"] if table is None else table,
                PRIORITY_START + entry["rail"] if priority is None else priority)


def wanted(entry: t.Mapping[str, t.Any]) -> Want:
    """One rail as `_rail.addresses` plans it, for a reader that has no call of the module."""
    bad: list[Problem] = []
    want = _want(entry, bad)
    if want is None or bad:
        raise AidcError(bad)
    return want


def request(params: t.Mapping[str, t.Any]) -> Request:
    """Raises AidcError for what is no address at all."""
    bad: list[Problem] = []
    wants = [_want(entry, bad) for entry in params["rails"]]
    if bad:
        raise AidcError(bad)
    return Request(tuple(want for want in wants if want), params["owner"],
                   tuple((key, params[key]) for key in SYSCTL_KEYS), params["disruption_policy"],
                   params["allow_management"])
