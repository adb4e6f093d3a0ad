# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the boot tool does with a host's intent: calls, what they did, what differs."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

SCHEMA_VERSION = 1
# As those of the gate's command line: docs/gate.md.
EXIT_OK, EXIT_DIFFERS, EXIT_NO_VERDICT = 0, 2, 3


@dataclass(frozen=True)
class Call:
    """One call of a module's own code, with options that are complete."""

    section: str
    options: dict[str, t.Any]


@dataclass(frozen=True)
class Deed:
    """A step: done, or (as ``--check`` tells it) to be done."""

    section: str
    command: tuple[str, ...]
    why: str

    def text(self) -> str:
        return f"{self.section}: {' '.join(self.command)} ({self.why})"


@dataclass(frozen=True)
class Drift:
    """Something that is not as the intent says. Without a command it is not the boot tool's to put right."""

    section: str
    what: str
    port: str | None = None
    command: tuple[str, ...] = ()

    def text(self) -> str:
        return f"{self.section}: {self.what}"

    def as_dict(self) -> dict[str, t.Any]:
        return {"section": self.section, "port": self.port, "what": self.what, "command": list(self.command)}


@dataclass(frozen=True)
class Round:
    """One pass over all sections."""

    done: tuple[Deed, ...] = ()
    drift: tuple[Drift, ...] = ()

    def __add__(self, other: Round) -> Round:
        return Round(self.done + other.done, self.drift + other.drift)


@dataclass(frozen=True)
class Reason:
    """Why the tool runs: ``boot``, ``udev`` with the netdev that came and its PCI address, or ``hand``."""

    kind: str
    netdev: str = ""
    port: str | None = None

    @property
    def settle_seconds(self) -> float:
        """How long others (drivers, managers of the network) may take until what is theirs is back."""
        return {"boot": 60.0, "udev": 20.0}.get(self.kind, 5.0)

    def __str__(self) -> str:
        return f"{self.kind}:{self.netdev}" if self.netdev else self.kind


@dataclass(frozen=True)
class Present:
    """PCI addresses of the intent that have a netdev and what RoCE needs, and why the others have not."""

    ready: frozenset[str] = frozenset()
    lacking: dict[str, str] = field(default_factory=dict)
