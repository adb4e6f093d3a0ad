# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what iproute2 and procfs say about the uses of ports. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import ipaddress
import json
import re
import typing as t

from .model import Link

# Kinds whose "link" names the port that carries them; for a veth it names the other end.
_STACKED = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"}
_ADDR_OPTION = re.compile(r"(?:^|,)(?:addr|mon_addr)=([^,]+)")


def _objects(text: str) -> list[dict[str, t.Any]]:
    # `ip -j` prints nothing at all, not [], for some empty answers.
    data = json.loads(text or "[]")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError("not a JSON list of objects")
    # iproute2 leaves an empty object for every entry that a filter dropped.
    return [item for item in data if item]


def _link(item: dict[str, t.Any]) -> Link:
    info = item.get("linkinfo") or {}
    kind = str(info.get("info_kind", ""))
    addresses = tuple(str(entry["local"]) for entry in item.get("addr_info", []) if "local" in entry)
    return Link(
        name=str(item["ifname"]),
        index=int(item.get("ifindex", 0)),
        # 0 stands for "no limit stated".
        max_mtu_bytes=int(item.get("max_mtu", 0)) or None,
        kind=kind,
        master=item.get("master"),
        member_kind=str(info.get("info_slave_kind", "")),
        lower=item.get("link") if kind in _STACKED else None,
        addresses=addresses,
        mtu_bytes=int(item.get("mtu", 0)) or None,
    )


def links(text: str) -> dict[str, Link]:
    """Links of ``ip -d -j addr show``."""
    try:
        found = [_link(item) for item in _objects(text)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an entry without {error}") from error
    return {link.name: link for link in found}


def route_devices(text: str) -> tuple[str, ...]:
    """Devices of the routes in ``ip -j route show`` or ``get``, next hops of multipath routes included."""
    devices = []
    for route in _objects(text):
        devices += [hop.get("dev") for hop in [route, *route.get("nexthops", [])]]
    return tuple(dict.fromkeys(device for device in devices if device))


def address(text: str) -> str | None:
    """The plain address in ``1.2.3.4``, ``1.2.3.4:6789``, ``[v6]:port``, ``v6%zone``, or None for a name."""
    bare = re.sub(r"%[^\]:]*", "", text.strip())
    match = re.fullmatch(r"\[([^\]]+)\](?::\d+)?|([^:]+):\d+", bare)
    try:
        found = ipaddress.ip_address((match.group(1) or match.group(2)) if match else bare)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def ssh_local_address(environ: bytes) -> str | None:
    """Local address of the connection in a process's environment (third field of SSH_CONNECTION)."""
    for entry in environ.split(b"\0"):
        name, _equals, value = entry.partition(b"=")
        fields = value.decode("ascii", errors="replace").split()
        if name == b"SSH_CONNECTION" and len(fields) == 4:
            return address(fields[2])
    return None


def sshd_local_addresses(text: str) -> tuple[str, ...]:
    """Local addresses of sshd's connections in ``ss -tnHp``."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        # With one state asked for, ss leaves the state column out.
        if '("sshd' in line and len(fields) >= 5:
            found.append(address(fields[-3]))
    return tuple(dict.fromkeys(item for item in found if item))


def parent_pid(status: str) -> int:
    match = re.search(r"^PPid:\s*(\d+)", status, re.MULTILINE)
    return int(match.group(1)) if match else 0


def _servers(kind: str, source: str, options: str) -> list[str]:
    if kind in ("nfs", "nfs4", "cifs", "smb3"):
        return list(_ADDR_OPTION.findall(options))
    if kind == "ceph":
        # Old form "mon1,mon2:/path"; new form keeps the monitors, joined by "/", in mon_addr.
        monitors = [part for value in _ADDR_OPTION.findall(options) for part in value.split("/")]
        return monitors or source.rsplit(":/", 1)[0].split(",")
    if kind == "lustre":
        # NIDs: "10.0.0.1@o2ib,10.0.0.2@o2ib:10.0.0.3@o2ib:/fs"
        return re.findall(r"([^,:@]+)@", source)
    return []


def storage_servers(mountinfo: str) -> tuple[str, ...]:
    """Addresses of the servers of network file systems in /proc/self/mountinfo."""
    found = []
    for line in mountinfo.splitlines():
        _mount, separator, rest = line.partition(" - ")
        fields = rest.split()
        if separator and len(fields) >= 2:
            found += [address(item) for item in _servers(fields[0], fields[1], fields[2] if len(fields) > 2 else "")]
    return tuple(dict.fromkeys(item for item in found if item))


def nvme_server(text: str) -> str | None:
    """Server in /sys/class/nvme/*/address of an NVMe-oF controller: ``traddr=1.2.3.4,trsvcid=4420``."""
    match = re.search(r"(?:^|,)traddr=([^,]+)", text)
    return address(match.group(1)) if match else None
