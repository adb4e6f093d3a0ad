# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From all records of one host to the values that the rules look at. Pure and total."""
from __future__ import annotations

import ipaddress
import typing as t
from datetime import datetime

from .._fleet.record import age_seconds, age_text
from .derive import Data, Records, place
from .expect import HostWant
from .facts import Host, Path, Place

# Kinds of records that the audit reads; a host need not have all of them.
KINDS = ("mlx5_info", "host_info", "roce_qos", "roce_gid", "mlx5_nvconfig", "fabric_boot", "path_probe")
# Of `stack` and `pcie_findings` in mlx5_info; the audit has rules of its own for PCIe.
_PCIE = "PCIe link of"
_PAUSE = "global pause of "
_SHOWN = 2
# The newest intent file that this release can read.
INTENT_SCHEMA = 1


def _by(key: str, entries: t.Any) -> dict[str, Data]:
    return {entry[key]: entry for entry in entries or () if isinstance(entry, dict) and entry.get(key)}


def complete(info: Data) -> bool:
    """Whether mlx5_info has read the QoS of every port itself, so that no other record has to stand in."""
    ports = [port for device in info.get("devices") or () for port in device.get("ports") or ()]
    return bool(ports) and "fabric" in info and all(port.get("qos") for port in ports)


def _pauses(findings: t.Any) -> dict[str, str]:
    """roce_qos has looked at global pause, and says it as a finding."""
    return {str(one["object"])[len(_PAUSE):].partition(" ")[0]: str(one.get("got"))
            for one in findings or () if str(one.get("object", "")).startswith(_PAUSE)}


def _records(data: t.Mapping[str, Data]) -> Records:
    info, host = data.get("mlx5_info", {}), data.get("host_info", {})
    fabric = info.get("fabric") or {}
    neighbours = {one["netdev"]: one.get("chassis") or one.get("chassis_id") for one in host.get("lldp") or ()}
    rules = fabric.get("rules")
    return Records(
        _by("pci", info.get("devices")), fabric.get("ports") or {}, _by("pci", data.get("roce_qos", {}).get("ports")),
        _by("pci", data.get("roce_gid", {}).get("ports")), _by("pci", data.get("mlx5_nvconfig", {}).get("devices")),
        fabric.get("netdevs"), neighbours, None if rules is None else frozenset(rules), fabric.get("routes") or {},
        _pauses(data.get("roce_qos", {}).get("findings")))


def _one_subnet(places: t.Sequence[Place], records: Records) -> str | None:
    """Rails whose networks overlap. With one address each, and that the planned one, the plan has seen to it."""
    if records.netdevs is None or all(one.facts.has_address and len(one.addresses) == 1 for one in places):
        return None
    networks: list[tuple[int, t.Any]] = []
    for one in places:
        # An address in another rail's subnet is said of that rail.
        if one.facts.other_rail is not None:
            continue
        for text in records.netdevs.get(one.netdev, {}).get("addresses") or ():
            try:
                network = ipaddress.ip_interface(text).network
            except ValueError:
                continue
            if not network.is_link_local:
                networks.append((one.rail, network))
    for position, (rail, network) in enumerate(networks):
        for other, second in networks[position + 1:]:
            if rail != other and network.version == second.version and network.overlaps(second):
                return f"{rail} and {other}"
    return None


def _boot(fabric: Data, record: Data) -> dict[str, t.Any]:
    """The unit and the intent as mlx5_info saw them; what differs from the intent, as the tool itself said."""
    unit, intent = fabric.get("boot_unit"), fabric.get("intent") or {}
    schema = intent.get("schema_version")
    texts = [" ".join(str(one[key]) for key in ("section", "port", "what") if one.get(key)) if isinstance(one, dict)
             else str(one) for one in record.get("drift") or ()]
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return {
        "boot": None if unit is None else unit != "not-found",
        "boot_enabled": None if unit in (None, "not-found") else unit == "enabled", "boot_state": unit,
        "boot_drift": "; ".join(texts[:_SHOWN]) + more or None, "intent_unreadable": intent.get("problem"),
        "intent_newer": schema if isinstance(schema, int) and schema > INTENT_SCHEMA else None,
    }


def _paths(record: Data | None) -> tuple[Path, ...]:
    found = [Path(int(one["rail"]), str(one.get("peer", "")), int(one["size_bytes"]), int(one["largest_bytes"]),
                  str(one.get("reason") or ""))
             for one in (record or {}).get("paths") or () if one.get("rail") is not None and not one.get("passed")]
    return tuple(found)


def _troubles(info: Data) -> str | None:
    texts = [f"{one.get('object')}: {one.get('got')}" for one in info.get("problems") or ()
             if one.get("got") != "no mlx5 device"]
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more if texts else None


def host(want: HostWant, data: t.Mapping[str, Data], record: t.Any, now: datetime, why: str = "") -> Host:
    """``data`` by kind, ``record`` the whole record of mlx5_info (its age counts), ``why`` there is none."""
    if "mlx5_info" not in data:
        return Host(record=False, why=why or "no record of mlx5_info")
    try:
        return _host(want, data, record, now)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        # One host's record of another release or of another hand must not end the audit of all.
        return Host(record=False, why=f"its records have another shape: {type(error).__name__}: {error}")


def _host(want: HostWant, data: t.Mapping[str, Data], record: t.Any, now: datetime) -> Host:
    info, records = data["mlx5_info"], _records(data)
    fabric: Data = info.get("fabric") or {}
    seconds = age_seconds(record, now)
    old = seconds is None or seconds > want.want.max_age_hours * 3600
    subnets = {one.rail: one.subnet for one in want.rails if one.subnet}
    places = tuple(place(one, records, subnets) for one in want.rails)
    stack = info.get("stack") or {}
    stale = [f"{one.get('object')}: {one.get('got')}" for one in info.get("findings") or ()
             if not str(one.get("object", "")).startswith(_PCIE)]
    return Host(
        record_old=f"{age_text(seconds)} ago" if old else None, problems=_troubles(info), lldpad=fabric.get("lldpad"),
        one_subnet=_one_subnet(places, records), driver=f"{stack['backend']} {stack.get('version') or ''}".strip()
        if stack.get("backend") else None, driver_stale="; ".join(stale[:_SHOWN]) or None,
        machine_id=data.get("host_info", {}).get("machine_id"), measured="path_probe" in data, places=places,
        paths=_paths(data.get("path_probe")), **_boot(fabric, data.get("fabric_boot") or {}))
