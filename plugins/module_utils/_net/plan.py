# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which ports carry something that must not be cut off, and what. Pure."""
from __future__ import annotations

from .model import NetState

_MEMBER_KINDS = {"bridge", "bond", "team"}


def _beneath(state: NetState, device: str, seen: frozenset[str] = frozenset()) -> list[str]:
    """The device and every link that carries it: parent of a VLAN, members of a bond or bridge."""
    if device in seen:
        return []
    seen = seen | {device}
    link = state.links.get(device)
    below = [name for name, other in state.links.items() if other.master == device]
    if link is not None and link.lower:
        below.append(link.lower)
    return [device] + [name for item in below for name in _beneath(state, item, seen)]


def _membership(state: NetState) -> list[tuple[str, str]]:
    found = []
    for name, link in state.links.items():
        if link.master == "ovs-system":
            found.append((name, "is a port of Open vSwitch"))
        elif link.master and link.member_kind in _MEMBER_KINDS:
            found.append((name, f"is a member of the {link.member_kind} {link.master}"))
    return found


def uses(state: NetState) -> dict[str, str]:
    """For each link in use: the reasons why it is no rail, joined by "; "."""
    found = _membership(state)
    for device in state.default_devices:
        found += [(name, "carries the default route") for name in _beneath(state, device)]
    for address in state.ssh_addresses:
        for link in state.links.values():
            if address in link.addresses:
                found += [(name, f"carries the SSH connection ({address})") for name in _beneath(state, link.name)]
    for server, device in state.storage:
        found += [(name, f"carries a network file system (server {server})") for name in _beneath(state, device)]
    reasons: dict[str, list[str]] = {}
    for name, reason in found:
        if reason not in reasons.setdefault(name, []):
            reasons[name].append(reason)
    return {name: "; ".join(texts) for name, texts in reasons.items()}
