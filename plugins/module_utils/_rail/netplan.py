# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""netplan: one file of ours for all rails, on the ids that the ports already have. Pure.

An entry is a line: a name and a JSON object, which is YAML too, so that we can read our own file without a
YAML library.
"""
from __future__ import annotations

import fnmatch
import json
import posixpath
import typing as t

from .._host.errors import Problem
from .model import HEADER, File, Stanza, Step, Want, route_text, rule_text
from .networkd import reload_steps
from .owner import Owner

PATH = "/etc/netplan/90-aidc-rails.yaml"
# netplan warns about a file that others can read [M].
FILE_MODE = 0o600
_HEAD = f"{HEADER}\nnetwork:\n  version: 2\n  ethernets:\n"


def id_of(network_file: str | None) -> str | None:
    """netplan writes /run/systemd/network/10-netplan-ID.network."""
    name = posixpath.basename(network_file or "")
    start, end = "10-netplan-", ".network"
    return name[len(start):-len(end)] if name.startswith(start) and name.endswith(end) else None


def definition(want: Want) -> dict[str, t.Any]:
    """The rail in netplan's words; ignore-carrier is known since 0.104."""
    found: dict[str, t.Any] = {"addresses": [want.address], "mtu": want.mtu_bytes, "ignore-carrier": True}
    if want.gateway:
        found["routing-policy"] = [{"from": want.ip, "table": want.table, "priority": want.priority}]
        first: dict[str, t.Any] = {"to": want.subnet, "table": want.table}
        if want.version == 4:
            first["scope"] = "link"
        found["routes"] = [first, *({"to": there, "via": want.gateway, "table": want.table}
                                    for there in want.destinations)]
    return found


def text(entries: t.Mapping[str, t.Any]) -> str:
    lines = [f"    {json.dumps(name)}: {json.dumps(entries[name])}\n" for name in sorted(entries)]
    return _HEAD + "".join(lines)


def read(content: str) -> dict[str, dict[str, t.Any]]:
    """Entries of our own file; those that were changed by hand beyond our form are left out."""
    found = {}
    for line in content.splitlines():
        if line.startswith('    "'):
            try:
                name, end = json.JSONDecoder().raw_decode(line[4:])
                found[str(name)] = json.loads(line[4 + end:].lstrip(": "))
            except ValueError:
                continue
    return found


def _destination(value: str, version: int) -> str:
    return {4: "0.0.0.0/0", 6: "::/0"}[version] if value == "default" else value


def stanza(entry: t.Mapping[str, t.Any]) -> Stanza:
    """A definition in our terms. An address may be a mapping of itself to its options."""
    addresses = [next(iter(item), "") if isinstance(item, dict) else str(item) for item in entry.get("addresses") or ()]
    rules = [rule_text(str(rule["from"]), int(rule["table"]), int(rule["priority"]))
             for rule in entry.get("routing-policy") or () if {"from", "table", "priority"} <= set(rule)]
    routes = [route_text(_destination(str(route["to"]), 6 if ":" in str(route.get("via", "")) else 4),
                         route.get("via"), int(route["table"]))
              for route in entry.get("routes") or () if {"to", "table"} <= set(route)]
    mtu = entry.get("mtu")
    return Stanza(tuple(addresses), int(mtu) if mtu else None, entry.get("ignore-carrier") is True,
                  tuple(rules), tuple(routes))


def ids_for(definitions: t.Mapping[str, t.Any], netdev: str, mac: str = "") -> list[str]:
    """Definitions that fit a port: by name, or by their match."""
    found = []
    for name, entry in definitions.items():
        match = entry.get("match")
        if not isinstance(match, dict):
            fits = name == netdev
        else:
            fits = (fnmatch.fnmatchcase(netdev, str(match["name"])) if "name" in match
                    else bool(mac) and str(match.get("macaddress", "")).lower() == mac)
        if fits:
            found.append(name)
    return found


class Netplan(Owner):
    name = "netplan"

    def id(self, want: Want) -> str:
        netdev = self.node.netdev(want.pci)
        link = self.node.networkd.links.get(netdev)
        return id_of(link.network_file if link else None) or next(iter(ids_for(self.node.netplan, netdev)), netdev)

    def _others(self, want: Want) -> list[str]:
        return [name for name in ids_for(self.node.netplan, self.node.netdev(want.pci)) if name != self.id(want)]

    def check(self, want: Want) -> list[Problem]:
        others = self._others(want)
        if others:
            name, ids = self.node.netdev(want.pci), ", ".join([self.id(want), *others])
            return [Problem(f"netplan's definitions of {name}", ids, "one",
                            "the first by name gives the addresses, the MTU of another still applies")]
        return self.foreign_file(PATH)

    def saved(self, want: Want) -> Stanza:
        """netplan's own merge of all its files."""
        return stanza(self.node.netplan.get(self.id(want)) or {})

    def ours(self, want: Want) -> Stanza | None:
        entry = read(self.node.text(PATH) or "").get(self.id(want))
        return None if entry is None else stanza(entry)

    def kept(self, want: Want) -> tuple[str, ...]:
        ours = self.ours(want)
        return tuple(item for item in self.saved(want).addresses if ours is None or item not in ours.addresses)

    def files(self, wants: t.Sequence[Want]) -> list[File]:
        if not wants:
            return []
        entries = {self.id(want): definition(want) for want in wants}
        have = read(self.node.text(PATH) or "")
        netdevs = [self.node.netdev(want.pci) for want in wants if have.get(self.id(want)) != entries[self.id(want)]]
        return [File(PATH, text(entries), FILE_MODE, tuple(netdevs))]

    def take_over(self, changed: t.Sequence[File], netdevs: t.Sequence[str], drifted: t.Sequence[str]) -> list[Step]:
        steps = []
        if changed:
            # It fails on a file that it does not understand, before anything is applied.
            steps.append(Step(("netplan", "generate"), "files changed", judges=True))
        # Not `netplan apply`, which takes every port of the host in hand.
        return [*steps, *reload_steps(bool(changed), netdevs, drifted)]
