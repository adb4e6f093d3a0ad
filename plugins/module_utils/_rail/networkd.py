# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""systemd-networkd: a drop-in of the port's own .network file, or a file of ours where there is none. Pure."""
from __future__ import annotations

import ipaddress
import posixpath
import typing as t

from .._host.errors import Problem
from .._networkd.model import DIRECTORIES, RAIL_DROPIN, RAIL_FILE, RELOAD, ConfigFile, Saved
from .._networkd.parse import assignments, link_mtu
from .._networkd.plan import dropin_path, with_file
from .model import HEADER, File, Stanza, Step, Want, route_text, rule_text
from .owner import Owner, saves

# After 50-aidc-mtu.conf, the drop-in of mlx5_port, whose MTU it replaces.
DROPIN_NAME = RAIL_DROPIN
FILE_MODE = 0o644
_TRUE = {"yes", "true", "1", "on", "y", "t"}
_MACS = {"MACAddress", "PermanentMACAddress"}


def own_path(rail: int) -> str:
    """Sorts before what distributions and provisioning write: the first file that matches wins whole [M]."""
    return posixpath.join(DIRECTORIES[0], f"{RAIL_FILE}{rail}.network")


def _body(want: Want) -> str:
    """ConfigureWithoutCarrier implies IgnoreCarrierLoss [systemd.network(5)]."""
    text = f"[Link]\nMTUBytes={want.mtu_bytes}\n\n[Network]\nAddress={want.address}\nConfigureWithoutCarrier=yes\n"
    if not want.gateway:
        return text
    scope = "Scope=link\n" if want.version == 4 else ""
    text += f"\n[RoutingPolicyRule]\nFrom={want.ip}\nTable={want.table}\nPriority={want.priority}\n"
    text += f"\n[Route]\nDestination={want.subnet}\n{scope}Table={want.table}\n"
    for there in want.destinations:
        text += f"\n[Route]\nDestination={there}\nGateway={want.gateway}\nTable={want.table}\n"
    return text


def own_text(want: Want, netdev: str) -> str:
    return f"{HEADER}\n[Match]\nName={netdev}\n\n{_body(want)}"


def dropin_text(want: Want) -> str:
    return f"{HEADER}\n{_body(want)}"


def _sections(files: t.Iterable[ConfigFile]) -> t.Iterator[tuple[str, dict[str, str]]]:
    for file in files:
        section: tuple[str, dict[str, str]] = ("", {})
        for name, key, value in assignments(file.text):
            if not key:
                yield section
                section = (name, {})
            else:
                section[1][key] = value
        yield section


def _addresses(files: t.Sequence[ConfigFile]) -> tuple[str, ...]:
    found: list[str] = []
    for file in files:
        for section, key, value in assignments(file.text):
            if (section, key) == ("Network", "Address") and not value:
                found.clear()
            elif section in ("Network", "Address") and key == "Address":
                found.append(value)
    return tuple(dict.fromkeys(found))


def _source(text: str) -> str:
    """A rule's source as iproute2 prints it: without the length of a single host."""
    network = ipaddress.ip_network(text, strict=False)
    return str(network[0]) if network.num_addresses == 1 else str(network)


def _rule(entries: t.Mapping[str, str]) -> str | None:
    try:
        return rule_text(_source(entries["From"]), int(entries["Table"]), int(entries["Priority"]))
    except (KeyError, ValueError):
        return None


def _route(entries: t.Mapping[str, str]) -> str | None:
    try:
        return route_text(entries["Destination"], entries.get("Gateway"), int(entries["Table"]))
    except (KeyError, ValueError):
        return None


def stanza(files: t.Sequence[ConfigFile]) -> Stanza:
    """What these files say together, in the order in which networkd reads them."""
    mtu, ignore, rules, routes = 0, False, [], []
    for file in files:
        here = link_mtu(file.text)
        mtu = mtu if here is None else here
    for section, entries in _sections(files):
        if section == "Network" and "ConfigureWithoutCarrier" in entries:
            ignore = entries["ConfigureWithoutCarrier"].lower() in _TRUE
        if section == "RoutingPolicyRule":
            rules.append(_rule(entries))
        if section == "Route":
            routes.append(_route(entries))
    return Stanza(_addresses(files), mtu or None, ignore, tuple(filter(None, rules)), tuple(filter(None, routes)))


def _names_one(saved: Saved, netdev: str) -> bool:
    """Whether the main file can match this port only. A glob may match more ports tomorrow."""
    match: dict[str, str] = {}
    for section, entries in _sections(saved.files[:1]):
        if section == "Match":
            match.update(entries)
    return match.get("Name") == netdev or any(len(match.get(key, "").split()) == 1 for key in _MACS)


def _after(other: str, path: str, netdev: str) -> list[Problem]:
    """Our file must be read before one that matches more ports."""
    ours = posixpath.basename(path)
    if posixpath.basename(other) > ours:
        return []
    return [Problem(f"files of {netdev}", f"{other}, which matches more ports and is read first",
                    f"a name after {ours}", "rename it, or give the port a file of its own")]


class Networkd(Owner):
    name = "networkd"

    def _saved(self, want: Want) -> Saved | None:
        """The files in use, or those that will be once networkd has read our own one."""
        netdev, own = self.node.netdev(want.pci), own_path(want.rail)
        saved, text = self.node.networkd.of(netdev), self.node.text(own)
        in_use = saved is not None and saved.network_file == own
        return Saved(own, (ConfigFile(own, text),)) if text is not None and not in_use else saved

    def path(self, want: Want) -> str:
        """Our file: a drop-in where another's file is for this port alone, else a file of ours."""
        netdev, own = self.node.netdev(want.pci), own_path(want.rail)
        saved = self.node.networkd.of(netdev)
        if saved is None or self.node.text(own) is not None or not _names_one(saved, netdev):
            return own
        return dropin_path(saved.network_file, DROPIN_NAME)

    def _text(self, want: Want) -> str:
        if self.path(want) == own_path(want.rail):
            return own_text(want, self.node.netdev(want.pci))
        return dropin_text(want)

    def check(self, want: Want) -> list[Problem]:
        path, netdev = self.path(want), self.node.netdev(want.pci)
        problems = self.foreign_file(path)
        saved = self.node.networkd.of(netdev)
        if problems or saved is None:
            return problems
        if path != own_path(want.rail):
            files = with_file(saved, path, self._text(want)).files
        elif saved.network_file == path:
            files = (ConfigFile(path, self._text(want)), *saved.files[1:])
        else:
            return _after(saved.network_file, path, netdev)
        return [Problem(f"saved {what} of {netdev}", f"{got} in a drop-in that is read after ours", wanted,
                        f"remove it from the drop-ins of {saved.network_file}")
                for what, got, wanted in saves(stanza(files), want)]

    def saved(self, want: Want) -> Stanza:
        saved = self._saved(want)
        return stanza(saved.files) if saved else Stanza()

    def ours(self, want: Want) -> Stanza | None:
        text = self.node.text(self.path(want))
        return None if text is None else stanza([ConfigFile(self.path(want), text)])

    def kept(self, want: Want) -> tuple[str, ...]:
        path, own = self.path(want), own_path(want.rail)
        saved = self.node.networkd.of(self.node.netdev(want.pci))
        # A file of ours replaces whatever matched before; a drop-in adds to it.
        if saved is None or (path == own and saved.network_file != own):
            return ()
        return _addresses([file for file in saved.files if file.path != path])

    def files(self, wants: t.Sequence[Want]) -> list[File]:
        return [File(self.path(want), self._text(want), FILE_MODE, (self.node.netdev(want.pci),)) for want in wants]

    def take_over(self, changed: t.Sequence[File], netdevs: t.Sequence[str], drifted: t.Sequence[str]) -> list[Step]:
        return reload_steps(bool(changed), netdevs, drifted)


def reload_steps(reload: bool, netdevs: t.Sequence[str], drifted: t.Sequence[str]) -> list[Step]:
    """A reload configures ports with new files anew, and no others; a value that drifted wants more [M]."""
    steps = []
    if reload:
        steps.append(Step(RELOAD, "files changed", "link", tuple(netdevs), waits=True))
    if drifted:
        steps.append(Step(("networkctl", "reconfigure", *drifted), "running values differ", "link", tuple(drifted),
                          waits=True))
    return steps
