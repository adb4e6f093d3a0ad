# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose rails are owned by networkd, netplan or NetworkManager: stand-ins that do what their files say.

They read the files with expressions of their own, not with the parsers under test.
"""
from __future__ import annotations

import ipaddress
import json
import re
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import FakeNode, Rail, failed, ok

PROFILES = "/etc/NetworkManager/system-connections"
NETPLAN = "/etc/netplan/90-aidc-rails.yaml"
SYSCTLS = ("arp_ignore", "arp_announce", "rp_filter")
Fields = dict[str, t.Any]


@dataclass
class Live:
    """What the kernel has for a port."""

    mtu: int = 1500
    up: bool = True
    addresses: list[str] = field(default_factory=list)
    rules: list[tuple[str, int, int]] = field(default_factory=list)
    routes: list[tuple[str, str | None, int]] = field(default_factory=list)


def emit(value: t.Any, indent: int = 0) -> str:
    """YAML as netplan prints it."""
    pad, text = " " * indent, ""
    for key, item in value.items():
        if isinstance(item, dict):
            text += f"{pad}{key}:\n{emit(item, indent + 2)}"
        elif isinstance(item, list):
            text += f"{pad}{key}:\n"
            for one in item:
                inner = emit(one, indent + 2) if isinstance(one, dict) else f"{pad}  {json.dumps(one)}\n"
                text += f"{pad}- {inner[indent + 2:]}"
        else:
            text += f"{pad}{key}: {json.dumps(item)}\n"
    return text


@dataclass
class RailNode(FakeNode):
    owner: str = "networkd"
    live: dict[str, Live] = field(default_factory=dict)
    active: dict[str, str] = field(default_factory=dict)
    generated: dict[str, Fields] = field(default_factory=dict)
    cloud_init: dict[str, Fields] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    rdma: list[Fields] = field(default_factory=list)

    # -- building ---------------------------------------------------------------------------------

    def add(self, pci: str, netdev: str, rdma: str, address: str) -> None:
        self.add_rail(Rail(pci, netdev, rdma, address))
        self.live[netdev] = Live()
        for name in (netdev, "all"):
            for key in SYSCTLS:
                self.put(f"/proc/sys/net/ipv4/conf/{name}/{key}", "0\n")
        main = f"/etc/systemd/network/20-{netdev}.network"
        if self.owner == "networkd":
            self.put(main, f"[Match]\nName={netdev}\n\n[Network]\nIPv6AcceptRA=no\n")
            return
        (self.root / main[1:]).unlink()
        if self.owner == "netplan":
            self.rails[-1].network_file = f"/run/systemd/network/10-netplan-{netdev}.network"
            self.put(self.rails[-1].network_file, f"[Match]\nName={netdev}\n")
            self.cloud_init[netdev] = {"dhcp4": False}
            (self.root / "etc/netplan").mkdir(parents=True, exist_ok=True)
        else:
            self.networkd = "inactive"
            self.put(f"{PROFILES}/{netdev}.nmconnection",
                     f"[connection]\nid={netdev}\ninterface-name={netdev}\n\n[ipv4]\nmethod=disabled\n")
            self.active[netdev] = netdev

    # -- the owners -------------------------------------------------------------------------------

    def _set(self, netdev: str, fields: Fields) -> None:
        live = self.live[netdev]
        live.up, live.addresses = True, list(fields["addresses"])
        live.mtu = fields["mtu"] or live.mtu
        live.rules, live.routes = list(fields["rules"]), list(fields["routes"])

    def _read_networkd(self, netdev: str) -> Fields | None:
        folder = self.root / "etc/systemd/network"
        files = sorted(folder.glob("*.network"))
        main = next((file for file in files if re.search(f"^Name={netdev}$", file.read_text(), re.M)), None)
        if main is None:
            return None
        rail = next(rail for rail in self.rails if rail.netdev == netdev)
        rail.network_file = f"/etc/systemd/network/{main.name}"
        dropins = sorted((folder / f"{main.name}.d").glob("*.conf"))
        text = "\n".join(file.read_text() for file in [main, *dropins])
        return _fields(text)

    def networkd_reload(self, only: t.Sequence[str] = ()) -> Result:
        for rail in self.rails:
            if self.owner == "netplan":
                entry = self.generated.get(rail.netdev)
                fields = None if entry is None else _of_netplan(entry)
            else:
                fields = self._read_networkd(rail.netdev)
            if fields is None:
                continue
            new = json.dumps(fields) != self.read.get(rail.netdev)
            if new and not only or rail.netdev in only:
                self._set(rail.netdev, fields)
                self.admin_state.pop(rail.netdev, None)
                self.read[rail.netdev] = json.dumps(fields)
        return ok()

    def merged(self) -> dict[str, Fields]:
        found = {name: dict(entry) for name, entry in self.cloud_init.items()}
        path = self.root / NETPLAN[1:]
        text = path.read_text() if path.exists() else ""
        for name, entry in re.findall(r'^    "([^"]+)": (.*)$', text, re.M):
            old = found.setdefault(name, {})
            new = json.loads(entry)
            lists = {key: [*old.get(key, []), *[item for item in value if item not in old.get(key, [])]]
                     for key, value in new.items() if isinstance(value, list)}
            old.update({**new, **lists})
        return found

    def netplan(self, verb: str) -> Result:
        if verb == "get":
            return ok(emit({"network": {"version": 2, "ethernets": self.merged()}}))
        self.generated = self.merged()
        return ok()

    def _profile(self, name: str) -> str:
        path = self.root / PROFILES[1:] / f"{name}.nmconnection"
        if path.stat().st_mode & 0o077 and name.startswith("aidc"):
            return ""
        return path.read_text()

    def nmcli(self, call: tuple[str, ...]) -> Result:
        words = [word for word in call[1:] if not word.startswith("-") and word != "30"]
        if "device" in call and call[-1] == "device":
            lines = [f"{name}:ethernet:connected:{self.active[name]}" for name in self.active]
            return ok("\n".join([*lines, "lo:loopback:connected (externally):lo"]) + "\n")
        if call[-1] == "show":
            names = sorted(path.stem for path in (self.root / PROFILES[1:]).glob("*.nmconnection"))
            by_name = {name: netdev for netdev, name in self.active.items()}
            return ok("".join(f"{name}:u-{name}:802-3-ethernet:{by_name.get(name, '')}:{PROFILES}/{name}.nmconnection\n"
                              for name in names))
        if words[:2] == ["connection", "up"]:
            text = self._profile(words[-1])
            match = re.search(r"^interface-name=(.*)$", text, re.M)
            if match is None:
                return failed(10, "Error: unknown connection")
            self.active[match[1]] = words[-1]
            self._set(match[1], _of_profile(text))
        if words[:2] == ["device", "reapply"]:
            self._set(words[-1], _of_profile(self._profile(self.active[words[-1]])))
        return ok()

    # -- the machine ------------------------------------------------------------------------------

    def default(self, call: tuple[str, ...]) -> Result:
        if call[0] == "netplan":
            return self.netplan(call[1])
        if call[0] == "nmcli":
            return self.nmcli(call)
        if call[:2] == ("networkctl", "reload") or call[:2] == ("networkctl", "reconfigure"):
            return self.networkd_reload(call[2:])
        if call == ("systemctl", "is-active", "NetworkManager.service"):
            return ok("active\n") if self.owner == "networkmanager" else failed(3)
        if call[:4] == ("rdma", "-j", "resource", "show"):
            return ok(json.dumps(self.rdma))
        if call[:3] == ("ip", "-j", "route"):
            return self._route_get(call)
        if call[0] == "ip" and call[3:] == ("rule", "show"):
            return ok(json.dumps(self._rules()))
        if call[0] == "ip" and call[3:] == ("route", "show", "table", "all"):
            return ok(json.dumps(self._routes(call[2])))
        return super().default(call)

    def _rules(self) -> list[Fields]:
        kernel = [{"priority": number, "src": "all", "table": name}
                  for number, name in ((0, "local"), (32766, "main"), (32767, "default"))]
        return [*kernel, *({"priority": priority, "src": source, "table": str(table), "protocol": "static"}
                           for live in self.live.values() for source, table, priority in live.rules)]

    def _routes(self, family: str) -> list[Fields]:
        found: list[Fields] = [{"dst": "192.0.2.0/24", "dev": "eth0", "protocol": "kernel"}]
        for netdev, live in self.live.items():
            for there, gateway, table in live.routes:
                entry = {"dst": "default" if there in ("0.0.0.0/0", "::/0") else there, "dev": netdev,
                         "table": str(table)}
                if (":" in there) == (family == "-6"):
                    found.append({**entry, "gateway": gateway} if gateway else entry)
        return found

    def _route_get(self, call: tuple[str, ...]) -> Result:
        live = self.live[call[-1]]
        if not any(source == call[6] for source, _table, _priority in live.rules):
            return ok(json.dumps([{"dst": call[4], "from": call[6], "dev": call[-1]}]))
        peer = ipaddress.ip_address(call[4])
        way = next((gateway for there, gateway, _table in live.routes if gateway
                    and peer in ipaddress.ip_network(there)), None)
        return ok(json.dumps([{"dst": call[4], "dev": call[-1], **({"gateway": way} if way else {})}]))

    def links(self) -> list[Fields]:
        found = super().links()
        for entry in found:
            live = self.live.get(str(entry["ifname"]))
            if live is not None:
                entry.update(mtu=live.mtu, flags=["UP", "LOWER_UP"] if live.up else [], addr_info=[
                    {"local": text.split("/")[0], "prefixlen": int(text.split("/")[1]), "scope": "global",
                     "valid_life_time": 4294967295} for text in live.addresses])
        return found


def _grouped(text: str) -> list[tuple[str, Fields]]:
    parts = re.split(r"^\[(\w+)\]$", text, flags=re.M)
    return [(name, dict(re.findall(r"^(\w+)=(.*)$", body, re.M))) for name, body in zip(parts[1::2], parts[2::2])]


def _fields(text: str) -> Fields:
    groups = _grouped(text)
    mtus = re.findall(r"^MTUBytes=(\d+)$", text, re.M)
    return {
        "addresses": re.findall(r"^Address=(.*)$", text, re.M), "mtu": int(mtus[-1]) if mtus else None,
        "rules": [(group["From"], int(group["Table"]), int(group["Priority"]))
                  for name, group in groups if name == "RoutingPolicyRule"],
        "routes": [(group["Destination"], group.get("Gateway"), int(group["Table"]))
                   for name, group in groups if name == "Route"],
    }


def _of_netplan(entry: Fields) -> Fields:
    return {
        "addresses": entry.get("addresses", []), "mtu": entry.get("mtu"),
        "rules": [(rule["from"], rule["table"], rule["priority"]) for rule in entry.get("routing-policy", [])],
        "routes": [(route["to"], route.get("via"), route["table"]) for route in entry.get("routes", [])],
    }


def _of_profile(text: str) -> Fields:
    mtu = re.search(r"^mtu=(\d+)$", text, re.M)
    routes = re.findall(r"^route\d+=([^,\n]*)(?:,(.*))?\nroute\d+_options=table=(\d+)$", text, re.M)
    return {
        "addresses": re.findall(r"^address\d+=(.*)$", text, re.M), "mtu": int(mtu[1]) if mtu else None,
        "rules": [(source, int(table), int(priority)) for priority, source, table in re.findall(
            r"^routing-rule\d+=priority (\d+) from (\S+) table (\d+)$", text, re.M)],
        "routes": [(there, gateway or None, int(table)) for there, gateway, table in routes],
    }


def rail_node(root: Path, owner: str) -> RailNode:
    node = RailNode(root, owner=owner)
    node.add_netdev("eth0")
    node.add("0000:03:00.0", "rail0", "mlx5_0", "198.51.100.1")
    node.add("0002:03:00.0", "rail1", "mlx5_1", "203.0.113.1")
    return node
