# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which manager owns a port: the first that claims it, and never two. Pure."""
from __future__ import annotations

from dataclasses import dataclass

from .._host.errors import Problem
from .._networkd.plan import is_netplan
from .model import Node, OwnerName, Request
from .netplan import Netplan
from .networkd import Networkd
from .networkmanager import Manager
from .owner import Owner

_CONFIGURED = {"configured", "configuring", "failed"}
_WAITING = {"pending", "initialized"}
_MANAGED = ("connected", "connecting", "disconnected", "unavailable", "deactivating")
_CLASSES: dict[OwnerName, type[Owner]] = {"networkd": Networkd, "netplan": Netplan, "networkmanager": Manager}
NM_NETPLAN = "/run/NetworkManager/system-connections/netplan-"


@dataclass(frozen=True)
class Claim:
    """``owner`` None: nobody. ``problem`` stands in the way of any owner."""

    owner: OwnerName | None = None
    problem: Problem | None = None


def _networkd_claims(node: Node, netdev: str) -> bool:
    link = node.networkd.links.get(netdev)
    return link is not None and link.admin_state in _CONFIGURED and bool(link.network_file)


def _manager_claims(node: Node, netdev: str) -> bool:
    """"connected (externally)" is what NetworkManager says of a port that another one configured."""
    state = node.manager.devices.get(netdev, ("", ""))[0]
    return state.startswith(_MANAGED) and "externally" not in state


def _profile_of_netplan(node: Node, netdev: str) -> bool:
    name = node.manager.devices.get(netdev, ("", ""))[1]
    return any(one.device == netdev and one.name == name and one.path.startswith(NM_NETPLAN)
               for one in node.manager.connections)


def _waiting(node: Node, netdev: str) -> Problem | None:
    link = node.networkd.links.get(netdev)
    if link is None or link.admin_state not in _WAITING:
        return None
    return Problem(f"owner of {netdev}", f"systemd-networkd says {link.admin_state}", "a port that it has looked at",
                   "is udev running? without it networkd waits for ever")


def claims(node: Node, netdev: str) -> list[str]:
    """Everybody who manages the port."""
    found: list[str] = []
    if _networkd_claims(node, netdev):
        found.append("systemd-networkd")
    if _manager_claims(node, netdev):
        found.append("NetworkManager")
    if netdev in node.ifupdown:
        found.append("ifupdown")
    return found


def claim(node: Node, netdev: str) -> Claim:
    """The owner that there is."""
    found = claims(node, netdev)
    if len(found) > 1:
        return Claim(None, Problem(f"owner of {netdev}", " and ".join(found), "one manager",
                                   "the last writer wins; take the port away from one of them"))
    if found == ["ifupdown"]:
        return Claim(None, Problem(f"owner of {netdev}", "ifupdown (/etc/network/interfaces)",
                                   "systemd-networkd, netplan or NetworkManager", "ifupdown is not supported"))
    if found == ["NetworkManager"]:
        if _profile_of_netplan(node, netdev):
            return Claim(None, Problem(f"owner of {netdev}", "netplan with the renderer NetworkManager",
                                       "netplan with the renderer networkd", "this renderer is not supported"))
        return Claim("networkmanager")
    if found:
        return Claim("netplan" if is_netplan(str(node.networkd.links[netdev].network_file)) else "networkd")
    return Claim(None, _waiting(node, netdev))


def _running(node: Node, name: OwnerName) -> Problem | None:
    """Whether the manager that is to take a free port is there at all."""
    if name == "networkmanager":
        return None if node.manager.active else Problem("NetworkManager", "not running", "active", "start it")
    if not node.networkd.active:
        return Problem("systemd-networkd", node.networkd.state, "active", "start it, or name another owner")
    if name == "netplan" and not node.has_netplan:
        return Problem("netplan", "no /etc/netplan", "netplan on this host", "install it, or name another owner")
    return None


def choose(request: Request, node: Node, netdev: str) -> Claim:
    """The owner to write for: the one that there is, or the one asked for where there is none."""
    there = claim(node, netdev)
    if there.problem is not None:
        return there
    if there.owner is not None:
        if request.owner in ("auto", there.owner):
            return there
        return Claim(None, Problem(f"owner of {netdev}", there.owner, request.owner,
                                   "take the port away from it first, or use owner: auto"))
    if request.owner == "auto":
        return Claim(None, Problem(f"owner of {netdev}", "nobody", "systemd-networkd, netplan or NetworkManager",
                                   "name the one that is to have it in the option owner"))
    problem = _running(node, request.owner)
    return Claim(None, problem) if problem else Claim(request.owner)


def make(name: OwnerName, node: Node) -> Owner:
    return _CLASSES[name](node)
