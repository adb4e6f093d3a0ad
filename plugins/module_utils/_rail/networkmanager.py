# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""NetworkManager: a profile of ours for each rail, preferred over any other, and the carrier ignored. Pure."""
from __future__ import annotations

import posixpath
import typing as t
import uuid

from .._host.errors import Problem
from .model import HEADER, File, Running, Stanza, Step, Want, route_text, rule_text
from .owner import Owner
from .parse import keyfile

FOLDER = "/etc/NetworkManager/system-connections"
CONF = "/etc/NetworkManager/conf.d/90-aidc-rails.conf"
# A profile that others can read is left out without a word but in the log [M].
FILE_MODE = 0o600
CONF_MODE = 0o644
_NAMESPACE = uuid.UUID("b2cf5b63-6b2f-5b0e-9e0e-2f3f4d1f7a10")
UP_SECONDS = "30"
_MATCH = "match-device="


def profile(rail: int) -> str:
    return f"aidc-rail{rail}"


def path_of(rail: int) -> str:
    return f"{FOLDER}/{profile(rail)}.nmconnection"


def _stem(path: str) -> str:
    return posixpath.basename(path).partition(".")[0]


def identity(rail: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, profile(rail)))


def _routing(want: Want) -> str:
    if not want.gateway:
        return ""
    text, options = "", f"_options=table={want.table}\n"
    routes = [want.subnet, *(f"{there},{want.gateway}" for there in want.destinations)]
    for number, route in enumerate(routes, 1):
        text += f"route{number}={route}\nroute{number}{options}"
    return f"{text}routing-rule1=priority {want.priority} from {want.ip} table {want.table}\n"


def text(want: Want, netdev: str) -> str:
    """EUI-64 as networkd has it: the GIDs stay the same whoever owns the port [M]."""
    own = f"method=manual\naddress1={want.address}\nnever-default=true\n{_routing(want)}"
    ipv4, ipv6 = ("method=disabled\n", f"{own}addr-gen-mode=eui64\n") if want.version == 6 else (
        own, "method=link-local\naddr-gen-mode=eui64\n")
    return (f"{HEADER}\n[connection]\nid={profile(want.rail)}\nuuid={identity(want.rail)}\ntype=ethernet\n"
            f"interface-name={netdev}\nautoconnect=true\nautoconnect-priority=100\n\n"
            f"[ethernet]\nmtu={want.mtu_bytes}\n\n[ipv4]\n{ipv4}\n[ipv6]\n{ipv6}")


def conf_text(netdevs: t.Iterable[str]) -> str:
    devices = ",".join(f"interface-name:{name}" for name in sorted(netdevs))
    return f"{HEADER}\n[device-aidc-rails]\n{_MATCH}{devices}\nignore-carrier=yes\n"


def ignored(conf: str | None) -> set[str]:
    """netdevs in our configuration."""
    found: set[str] = set()
    for line in (conf or "").splitlines():
        if line.startswith(_MATCH):
            found |= {part.partition(":")[2] for part in line[len(_MATCH):].split(",")}
    return found


def _routes(group: t.Mapping[str, str]) -> list[str]:
    found = []
    for key, value in group.items():
        options = group.get(f"{key}_options", "")
        if key.startswith("route") and key[5:].isdigit() and "table=" in options:
            parts = value.split(",")
            gateway = parts[1] if len(parts) > 1 and parts[1] not in ("", "0.0.0.0", "::") else None
            table = options.split("table=")[1].split(",")[0]
            found.append(route_text(parts[0], gateway, int(table) if table.isdigit() else 0))
    return found


def _rules(group: t.Mapping[str, str]) -> list[str]:
    found = []
    for key, value in group.items():
        words = value.split()
        pairs = dict(zip(words[::2], words[1::2]))
        numbers = (pairs.get("table", ""), pairs.get("priority", ""))
        if key.startswith("routing-rule") and "from" in pairs and all(number.isdigit() for number in numbers):
            found.append(rule_text(pairs["from"], int(numbers[0]), int(numbers[1])))
    return found


def stanza(content: str, ignore_carrier: bool) -> Stanza:
    groups = keyfile(content)
    addresses: list[str] = []
    rules: list[str] = []
    routes: list[str] = []
    for name in ("ipv4", "ipv6"):
        group = groups.get(name, {})
        # Old profiles have the gateway behind the address.
        addresses += [value.split(",")[0] for key, value in group.items()
                      if key.startswith("address") and key[7:].isdigit()]
        rules += _rules(group)
        routes += _routes(group)
    mtu = groups.get("ethernet", {}).get("mtu", "")
    return Stanza(tuple(addresses), int(mtu) if mtu.isdigit() and int(mtu) else None, ignore_carrier, tuple(rules),
                  tuple(routes))


class Manager(Owner):
    name = "networkmanager"

    def _active(self, want: Want) -> str:
        return self.node.manager.devices.get(self.node.netdev(want.pci), ("", ""))[1]

    def check(self, want: Want) -> list[Problem]:
        return [*self.foreign_file(path_of(want.rail)), *self.foreign_file(CONF)]

    def _current(self, want: Want) -> str | None:
        """Our profile, or before there is one the saved profile in use."""
        netdev, name = self.node.netdev(want.pci), self._active(want)
        paths = [path_of(want.rail), *(one.path for one in self.node.manager.connections
                                       if one.device == netdev and one.name == name)]
        return next((found for path in paths if (found := self.node.text(path)) is not None), None)

    def saved(self, want: Want) -> Stanza:
        netdev = self.node.netdev(want.pci)
        return stanza(self._current(want) or "", netdev in ignored(self.node.text(CONF)))

    def ours(self, want: Want) -> Stanza | None:
        content = self.node.text(path_of(want.rail))
        return None if content is None else stanza(content, False)

    def kept(self, want: Want) -> tuple[str, ...]:
        """A port has one profile at a time, and it will be ours."""
        return ()

    def takes_part(self, want: Want) -> str:
        name = self._active(want)
        return "" if name == profile(want.rail) else f"its profile is {name or 'none'}"

    def files(self, wants: t.Sequence[Want]) -> list[File]:
        if not wants:
            return []
        netdevs = [self.node.netdev(want.pci) for want in wants]
        new = set(netdevs) ^ ignored(self.node.text(CONF))
        conf = File(CONF, conf_text(netdevs), CONF_MODE, tuple(name for name in netdevs if name in new))
        return [conf, *(File(path_of(want.rail), text(want, netdev), FILE_MODE, (netdev,))
                        for want, netdev in zip(wants, netdevs))]

    def take_over(self, changed: t.Sequence[File], netdevs: t.Sequence[str], drifted: t.Sequence[str]) -> list[Step]:
        steps = []
        profiles = [file for file in changed if file.path != CONF]
        if len(profiles) < len(changed):
            steps.append(Step(("nmcli", "general", "reload", "conf"), f"{CONF} changed"))
        if profiles:
            paths = tuple(file.path for file in profiles)
            steps.append(Step(("nmcli", "connection", "load", *paths), "profiles changed", judges=True))
        for file in profiles:
            steps.append(self._up(_stem(file.path), file.netdevs, "profile changed"))
        for netdev in drifted:
            steps += self._put_right(netdev)
        return steps

    def _put_right(self, netdev: str) -> list[Step]:
        """Our profile, which is on disk as it must be, on a port that is not as it says."""
        paths = [path for path, present in self.node.files.items() if path.startswith(f"{FOLDER}/aidc-rail")
                 and keyfile(present.text).get("connection", {}).get("interface-name") == netdev]
        active = self.node.manager.devices.get(netdev, ("", ""))[1]
        name = next((_stem(path) for path in paths), "")
        if active == name and self.node.running.get(netdev, Running()).up:
            # Milder than a new activation: the link stays up, and the MTU comes back too [M].
            return [Step(("nmcli", "device", "reapply", netdev), "running values differ", "link", (netdev,))]
        if active == name:
            # Which a new application of the profile does not put right (tried with 1.52).
            return [self._up(name, (netdev,), "the link is down")]
        why = f"the profile in use is {active or 'none'}"
        return [Step(("nmcli", "connection", "load", *paths), why), self._up(name, (netdev,), why)]

    @staticmethod
    def _up(name: str, netdevs: tuple[str, ...], why: str) -> Step:
        return Step(("nmcli", "--wait", UP_SECONDS, "connection", "up", "id", name), why, "link", netdevs)
