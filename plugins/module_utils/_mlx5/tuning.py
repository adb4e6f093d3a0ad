# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Settings of a port beside its MTU: admin state, rings, channels, pause, PCI read request. Pure.

Each group is read, planned and verified by itself; a setting that is not asked for is neither read nor touched.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from . import pcie

if t.TYPE_CHECKING:
    from .model import Disruptive

Value = t.Union[int, bool, str]
# Below it mlx5 refuses a transmit ring [Linux mlx5 en/params.h, MLX5E_PARAMS_MINIMUM_LOG_SQ_SIZE]; as a receive ring
# so few entries make no sense either.
MIN_RING_ENTRIES = 64


@dataclass(frozen=True)
class Have:
    """Settings of one port as they are, by the names of the options; ``most`` are the device's maximums."""

    values: dict[str, Value] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def _ethtool(letter: str, words: dict[str, str]) -> t.Callable[[str, str, dict[str, Value]], tuple[str, ...]]:
    def command(_pci: str, netdev: str, changes: dict[str, Value]) -> tuple[str, ...]:
        argv = ["ethtool", f"-{letter}", netdev]
        for name, value in changes.items():
            argv += [words[name], ("on" if value else "off") if isinstance(value, bool) else str(value)]
        return tuple(argv)

    return command


def _read_request(pci: str, _netdev: str, changes: dict[str, Value]) -> tuple[str, ...]:
    return pcie.set_read_request(pci, int(changes["max_read_request_bytes"]))


def _admin(_pci: str, netdev: str, changes: dict[str, Value]) -> tuple[str, ...]:
    return ("ip", "link", "set", "dev", netdev, str(changes["admin_state"]))


@dataclass(frozen=True)
class Group:
    """Settings that one command sets. ``letter`` is ethtool's option that reads them."""

    name: str
    keys: tuple[str, ...]
    disruptive: Disruptive
    command: t.Callable[[str, str, dict[str, Value]], tuple[str, ...]]
    letter: str = ""


# In the order of the steps. New rings or channels make mlx5 reopen them all: traffic stops for a moment [Linux mlx5
# en_ethtool.c, mlx5e_safe_switch_params]. Pause is one register write without autoneg, which mlx5 refuses [the same,
# mlx5e_ethtool_set_pauseparam]. A link is put up last, with all else in place.
GROUPS = (
    Group("rings", ("rx_ring_entries", "tx_ring_entries"), "link",
          _ethtool("G", {"rx_ring_entries": "rx", "tx_ring_entries": "tx"}), "g"),
    Group("channels", ("channels",), "link", _ethtool("L", {"channels": "combined"}), "l"),
    Group("pause", ("pause_rx", "pause_tx"), "none", _ethtool("A", {"pause_rx": "rx", "pause_tx": "tx"}), "a"),
    Group("read_request", ("max_read_request_bytes",), "none", _read_request),
    Group("admin_state", ("admin_state",), "link", _admin),
)
KEYS = tuple(key for group in GROUPS for key in group.keys)


def letters(settings: t.Mapping[str, Value]) -> list[str]:
    """Options of ethtool that must be asked for these settings."""
    return [group.letter for group in GROUPS if group.letter and set(group.keys) & set(settings)]


def _check_value(key: str, value: Value, most: int | None) -> tuple[str, str] | None:
    """(wanted, hint) if the device would not take the value."""
    if key.endswith("_ring_entries"):
        number = int(value)
        if number < MIN_RING_ENTRIES or (most is not None and number > most):
            return f"{MIN_RING_ENTRIES} to {most or 'the maximum'}, the device's limits", "look at ethtool -g"
        if number & (number - 1):
            return "a power of two", f"mlx5 would round it up to {1 << number.bit_length()}"
    if key == "channels" and (int(value) < 1 or (most is not None and int(value) > most)):
        return f"1 to {most or 'the maximum'}, the device's limits", "look at ethtool -l"
    return None


def check(name: str, settings: t.Mapping[str, Value], have: Have) -> list[Problem]:
    """What is wrong with the settings of a port, before anything is written."""
    found = list(have.problems)
    for key, value in settings.items():
        if key not in have.values and not have.problems:
            found.append(Problem(f"{key} of {name}", "no such setting in this driver", str(value), "leave it out"))
        wrong = _check_value(key, value, have.most.get(key))
        if wrong is not None:
            found.append(Problem(f"{key} of {name}", str(value), *wrong))
    return found


Planned = tuple[tuple[str, ...], "Disruptive", str]


def plan(pci: str, netdev: str, settings: t.Mapping[str, Value], have: Have) -> list[Planned]:
    """(command, what it disturbs, why) of each group with a difference; only what differs is written."""
    steps = []
    for group in GROUPS:
        changes = {key: settings[key] for key in group.keys
                   if key in settings and have.values.get(key) != settings[key]}
        if changes:
            why = ", ".join(f"{key} is {have.values.get(key)}" for key in changes)
            steps.append((group.command(pci, netdev, changes), group.disruptive, why))
    return steps


def verify(name: str, settings: t.Mapping[str, Value], have: Have) -> list[Problem]:
    return [Problem(f"{key} of {name}", str(have.values.get(key)), str(value),
                    "the tools reported success; read back after all steps")
            for key, value in settings.items() if have.values.get(key) != value]
