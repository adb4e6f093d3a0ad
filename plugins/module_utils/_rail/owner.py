# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The manager of a port: how it saves a rail in files of its own, and how it is told. Pure."""
from __future__ import annotations

import abc
import typing as t

from .._host.errors import Problem
from .model import HEADER, File, Node, OwnerName, Stanza, Step, Want


class Owner(abc.ABC):
    """One manager, for one reading of the node."""

    name: t.ClassVar[OwnerName]

    def __init__(self, node: Node) -> None:
        self.node = node

    @abc.abstractmethod
    def check(self, want: Want) -> list[Problem]:
        """Why this rail cannot be saved here."""

    @abc.abstractmethod
    def saved(self, want: Want) -> Stanza:
        """All that the files on disk say about the port, ours and others'."""

    @abc.abstractmethod
    def ours(self, want: Want) -> Stanza | None:
        """What our file alone says; None without one."""

    @abc.abstractmethod
    def kept(self, want: Want) -> tuple[str, ...]:
        """Addresses that other files give the port, which stay beside ours."""

    @abc.abstractmethod
    def files(self, wants: t.Sequence[Want]) -> list[File]:
        """Our files as they must be, for all rails of this owner."""

    @abc.abstractmethod
    def take_over(self, changed: t.Sequence[File], netdevs: t.Sequence[str], drifted: t.Sequence[str]) -> list[Step]:
        """Make it use new files (for ``netdevs``), and put the running state of ``drifted`` ports right."""

    def takes_part(self, _want: Want) -> str:
        """Why the running port is not what our file says although its values are; empty if all is well."""
        return ""

    def foreign_file(self, path: str) -> list[Problem]:
        text = self.node.text(path)
        if text is None or text.startswith(HEADER):
            return []
        return [Problem(path, "a file that is not ours", "our own file, or none",
                        "move it away; only files with our header are rewritten")]


def saves(stanza: Stanza, want: Want) -> list[tuple[str, str, str]]:
    """(what, got, wanted) for each value of the rail that is not saved."""
    found = []
    if want.address not in stanza.addresses:
        found.append(("address", ", ".join(stanza.addresses) or "none", want.address))
    if stanza.mtu_bytes != want.mtu_bytes:
        found.append(("MTU", str(stanza.mtu_bytes), str(want.mtu_bytes)))
    if not stanza.ignore_carrier:
        found.append(("carrier", "not ignored", "ignored"))
    for what, have, must in (("rule", stanza.rules, want.rules), ("route", stanza.routes, want.routes)):
        found += [(what, "none", text) for text in must if text not in have]
    return found
