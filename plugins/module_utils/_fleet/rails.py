# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Rails of hosts: is their definition sound, does a host match it, how does the fleet look. Pure and total."""
from __future__ import annotations

import typing as t
from datetime import datetime

from .._mlx5.model import IB_MTUS_BYTES, MIN_MTU_BYTES, PCI_ADDRESS, netdev_mtu_needed_bytes, rdma_mtu_bytes
from . import record

# What fits the kernel's checks for an Ethernet device; the device's own maximum is checked on the host.
MAX_MTU_BYTES = 65535
# No single space in a heading: the default callback breaks long lines there.
TITLES = ("HOST", "RAIL", "PCI", "NETDEV", "RDMA", "STATE", "MTU", "RDMA-MTU", "ROCE-V2-GID", "INDEX", "AGE")
_NUMBERS = {"RAIL", "MTU", "RDMA-MTU", "INDEX", "AGE"}
# A site is looked at once a day.
MAX_AGE_HOURS = 24.0
_NO_PROBLEM = {"object": "-", "got": "-", "wanted": "-", "hint": "-"}


class ShapeError(Exception):
    """A value has the wrong shape; the message starts with its path."""


def _is_integer(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_mtu(path: str, value: t.Any, expected_rdma: int) -> list[str]:
    if not _is_integer(value) or not MIN_MTU_BYTES <= value <= MAX_MTU_BYTES:
        return [f"{path}: got {value!r}, wanted {MIN_MTU_BYTES} to {MAX_MTU_BYTES} bytes"]
    gives = rdma_mtu_bytes(value)
    if gives == expected_rdma:
        return []
    return [f"{path}: got {value}, which gives RDMA MTU {gives}; wanted the netdev MTU for RDMA MTU {expected_rdma}, "
            f"which is {netdev_mtu_needed_bytes(expected_rdma)} or somewhat more"]


def _check_rail(path: str, rail: t.Any, expected_rdma: int) -> list[str]:
    if not isinstance(rail, t.Mapping):
        return [f"{path}: got {rail!r}, wanted a mapping with rail and pci"]
    found = []
    pci = rail.get("pci")
    if not isinstance(pci, str) or not PCI_ADDRESS.fullmatch(pci):
        found.append(f"{path}.pci: got {pci!r}, wanted a PCI address in lower case such as '0000:03:00.0'")
    if "mtu_bytes" in rail:
        found += _check_mtu(f"{path}.mtu_bytes", rail["mtu_bytes"], expected_rdma)
    unknown = sorted(set(map(str, rail)) - {"rail", "pci", "mtu_bytes"})
    if unknown:
        found.append(f"{path}: got the unknown key {unknown[0]}, wanted rail, pci and mtu_bytes only")
    return found


def rail_problems(rails: t.Any, mtu_bytes: t.Any, expected_rdma_mtu_bytes: t.Any) -> list[str]:
    """What is wrong with the variables of the role mlx5_port; each text starts with the variable's path."""
    if expected_rdma_mtu_bytes not in IB_MTUS_BYTES:
        return [f"mlx5_port_expected_rdma_mtu_bytes: got {expected_rdma_mtu_bytes!r}, wanted one of "
                f"{', '.join(map(str, sorted(IB_MTUS_BYTES)))}"]
    if not isinstance(rails, list) or not rails:
        return [f"mlx5_port_rails: got {rails!r}, wanted a list with one entry per rail"]
    found = _check_mtu("mlx5_port_mtu_bytes", mtu_bytes, expected_rdma_mtu_bytes)
    for position, rail in enumerate(rails):
        found += _check_rail(f"mlx5_port_rails[{position}]", rail, expected_rdma_mtu_bytes)
    entries = [rail for rail in rails if isinstance(rail, t.Mapping)]
    numbers: list[t.Any] = [rail.get("rail") for rail in entries]
    if not all(_is_integer(number) for number in numbers) or sorted(numbers) != list(range(len(rails))):
        found.append(f"mlx5_port_rails: got the rail numbers {numbers}, wanted each of 0 to {len(rails) - 1} once")
    addresses = [str(rail.get("pci")) for rail in entries]
    for address in sorted({item for item in addresses if addresses.count(item) > 1}):
        found.append(f"mlx5_port_rails: got pci {address} more than once, wanted each PCI address once")
    return found


def _ports_by_pci(data: t.Any, path: str) -> dict[str, tuple[dict[str, t.Any], dict[str, t.Any]]]:
    devices = data.get("devices") if isinstance(data, t.Mapping) else None
    if not isinstance(devices, list):
        raise ShapeError(f"{path}.devices: got {type(devices).__name__}, wanted a list")
    found = {}
    for position, device in enumerate(devices):
        here = f"{path}.devices[{position}]"
        if not isinstance(device, t.Mapping) or not isinstance(device.get("pci"), str):
            raise ShapeError(f"{here}: got {type(device).__name__} without a pci, wanted a device of mlx5_info")
        ports = device.get("ports")
        if not isinstance(ports, list) or not all(isinstance(port, t.Mapping) for port in ports):
            raise ShapeError(f"{here}.ports: got {type(ports).__name__}, wanted a list of ports")
        found[device["pci"]] = (dict(device), dict(ports[0]) if ports else {})
    return found


def _compare(name: str, port: t.Mapping[str, t.Any], wanted: t.Sequence[tuple[str, str, t.Any]]) -> list[str]:
    return [f"{name}: {label}: got {port.get(key)}, wanted {value}"
            for key, label, value in wanted if port.get(key) != value]


def rail_findings(
    data: t.Any, host: str, rails: t.Any, mtu_bytes: t.Any, expected_rdma_mtu_bytes: t.Any, check_saved: bool = True,
) -> list[str]:
    """Where the host's result of mlx5_info differs from its rails; empty when all is as wanted."""
    unsound = rail_problems(rails, mtu_bytes, expected_rdma_mtu_bytes)
    if unsound:
        raise ShapeError("; ".join(unsound))
    ports = _ports_by_pci(data, "mlx5_info")
    found = []
    for rail in rails:
        name = f"{host} rail {rail['rail']} ({rail['pci']})"
        if rail["pci"] not in ports:
            found.append(f"{name}: got no mlx5 device, wanted one; there is: {', '.join(ports) or 'none'}")
            continue
        mtu = rail.get("mtu_bytes", mtu_bytes)
        wanted = [("mtu_bytes", "netdev MTU", mtu), ("saved_mtu_bytes", "saved MTU", mtu),
                  ("rdma_mtu_bytes", "RDMA MTU", expected_rdma_mtu_bytes), ("state", "port state", "ACTIVE")]
        found += _compare(name, ports[rail["pci"]][1], [row for row in wanted if check_saved or "saved" not in row[0]])
    # What could not be read explains what is missing; without a finding it is of no interest here.
    problems = data.get("problems") if found else None
    for item in problems if isinstance(problems, list) else ():
        if isinstance(item, t.Mapping):
            found.append("{0}: {object}: got {got}, wanted {wanted} ({hint})".format(host, **{**_NO_PROBLEM, **item}))
    return found


def roce_gids(port: t.Mapping[str, t.Any]) -> list[t.Mapping[str, t.Any]]:
    """RoCE v2 GIDs of the port's IPv4 addresses on its own netdev, with their indices of this moment."""
    gids, ndevs = port.get("gids"), (None, port.get("netdev"))
    entries = [gid for gid in gids if isinstance(gid, t.Mapping)] if isinstance(gids, list) else []
    return [gid for gid in entries
            if (gid.get("family"), gid.get("type")) == ("ipv4", "RoCE v2") and gid.get("ndev") in ndevs]


def _gid(port: t.Mapping[str, t.Any]) -> tuple[str, str]:
    for gid in roce_gids(port):
        return f"::ffff:{gid.get('address')}", str(gid.get("index"))
    return "-", "-"


def _row(host: str, device: t.Mapping[str, t.Any], port: t.Mapping[str, t.Any], age: str) -> tuple[str, ...]:
    def text(value: t.Any) -> str:
        return "-" if value is None else str(value)

    cells = [device.get("rail"), device.get("pci"), port.get("netdev"), device.get("rdma_device"), port.get("state"),
             port.get("mtu_bytes"), port.get("rdma_mtu_bytes")]
    return (host, *map(text, cells), *_gid(port), age)


def _nothing(host: str, why: str, age: str) -> tuple[str, ...]:
    return (host, "-", why, *["-"] * (len(TITLES) - 4), age)


def _rows(record: t.Any, host: str, age: str) -> list[tuple[str, ...]]:
    pairs = _ports_by_pci(record.get("data"), f"records[{host!r}].data").values()
    rails = [(device, port) for device, port in pairs if _is_integer(device.get("rail"))]
    rows = [_row(host, device, port, age) for device, port in sorted(rails, key=lambda pair: int(pair[0]["rail"]))]
    return rows or [_nothing(host, "no rails", age)]


def _aligned(rows: t.Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if title in _NUMBERS else cell.ljust(width)
                 for cell, width, title in zip(row, widths, TITLES)]
        lines.append("  ".join(cells).rstrip())
    return lines


def _table_inputs(records: t.Any, hosts: t.Any) -> None:
    if not isinstance(records, t.Mapping):
        raise ShapeError(f"records: got {type(records).__name__}, wanted a mapping of host to record")
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) for host in hosts):
        raise ShapeError(f"hosts: got {type(hosts).__name__}, wanted a list of host names")
    for host in hosts:
        if host in records and not isinstance(records[host], t.Mapping):
            raise ShapeError(f"records[{host!r}]: got {type(records[host]).__name__}, wanted a record of mlx5_info")


def rail_table(
    records: t.Any, hosts: t.Any, now: datetime, max_age_hours: float = MAX_AGE_HOURS,
) -> list[str]:
    """Lines of a table hosts x rails, then a line for each host whose record is missing or old.

    ``hosts`` names the hosts in order. A record is of the last run that met the host, which may not be this one.
    """
    _table_inputs(records, hosts)
    rows: list[tuple[str, ...]] = [TITLES]
    remarks = []
    for host in hosts:
        if host not in records:
            rows.append(_nothing(host, "no record", "-"))
            remarks.append(f"{host}: no record: no run has met this host yet")
            continue
        seconds = record.age_seconds(records[host], now)
        rows += _rows(records[host], host, record.age_text(seconds))
        if seconds is None or seconds > max_age_hours * 3600:
            what = "no time" if seconds is None else f"an age of {record.age_text(seconds)}"
            remarks.append(f"{host}: old record: got {what}, wanted at most {max_age_hours:g} h "
                           "(aidc_state_max_age_hours); this run has not met the host: is it down, or left out by "
                           "--limit?")
    return [*_aligned(rows), *remarks]
