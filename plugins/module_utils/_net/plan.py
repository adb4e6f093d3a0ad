# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which ports carry something that must not be cut off, and what. Pure."""
from __future__ import annotations

import typing as t

from .model import NetState

_MEMBER_KINDS = {"bridge", "bond", "team"}
_SSH, _DEFAULT = "carries the SSH connection", "carries the default route"


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
        found += [(name, _DEFAULT) for name in _beneath(state, device)]
    for address in state.ssh_addresses:
        for link in state.links.values():
            if address in link.addresses:
                found += [(name, f"{_SSH} ({address})") for name in _beneath(state, link.name)]
    for server, device in state.storage:
        found += [(name, f"carries a network file system (server {server})") for name in _beneath(state, device)]
    reasons: dict[str, list[str]] = {}
    for name, reason in found:
        if reason not in reasons.setdefault(name, []):
            reasons[name].append(reason)
    return {name: "; ".join(texts) for name, texts in reasons.items()}


def is_management(reason: str) -> bool:
    """Whether it is what a host with one port has on its rail: the way to it."""
    return reason.startswith((_SSH, _DEFAULT))


def refusals(reasons: str | None, allow_management: bool) -> list[str]:
    """Of the reasons of a link in use those for which it must not be touched."""
    return [reason for reason in (reasons or "").split("; ")
            if reason and not (allow_management and is_management(reason))]


def hint(reasons: t.Iterable[str]) -> str:
    way_out = "take it out of the list, or move that use to another port"
    if not all(map(is_management, reasons)):
        return way_out
    return (f"{way_out}; or allow_management: true, with which the host undoes the change if the controller does not "
            "come back")


def management(uses: t.Mapping[str, str]) -> set[str]:
    """Links that carry the way to the host."""
    return {name for name, reasons in uses.items() if any(map(is_management, reasons.split("; ")))}
