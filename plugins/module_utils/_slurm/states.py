# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""States of a Slurm node: a base and flags, however a tool writes them. Pure.

Words and suffixes as in SchedMD slurm-24.11 src/common/slurm_protocol_defs.c (node_state_string*), JSON's as in
data_parser v0.0.42 (NODE_STATES); driver-slurm-k8s 3.6.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

BASES = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE", "INVALID"})
# Other names of the same flag.
_FLAGS = {"RES": "RESERVED", "MAINT": "MAINTENANCE", "NO_RESPOND": "NOT_RESPONDING", "INVAL": "INVALID_REG",
          "COMP": "COMPLETING", "REBOOT": "REBOOT_REQUESTED", "PLND": "PLANNED"}
_SUFFIXES = {"*": "NOT_RESPONDING", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED", "$": "MAINTENANCE",
             "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN", "-": "PLANNED",
             "+": "COMPLETING"}
_JOBS = ("ALLOCATED", "MIXED")
# What sinfo's words mean. A base that such a word hides is UNKNOWN: sinfo says "drained" of a node that is DOWN, too.
_WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "idle": ("IDLE", ()), "alloc": ("ALLOCATED", ()), "allocated": ("ALLOCATED", ()), "mix": ("MIXED", ()),
    "mixed": ("MIXED", ()), "down": ("DOWN", ()), "unk": ("UNKNOWN", ()), "unknown": ("UNKNOWN", ()),
    "futr": ("FUTURE", ()), "future": ("FUTURE", ()), "error": ("ERROR", ()), "err": ("ERROR", ()),
    "drain": ("UNKNOWN", ("DRAIN",)), "drained": ("UNKNOWN", ("DRAIN",)),
    "drng": ("UNKNOWN", ("DRAIN", "JOBS")), "draining": ("UNKNOWN", ("DRAIN", "JOBS")),
    "fail": ("UNKNOWN", ("FAIL",)), "failg": ("UNKNOWN", ("FAIL", "JOBS")), "failing": ("UNKNOWN", ("FAIL", "JOBS")),
    "comp": ("UNKNOWN", ("COMPLETING",)), "completing": ("UNKNOWN", ("COMPLETING",)),
    "maint": ("UNKNOWN", ("MAINTENANCE",)), "resv": ("IDLE", ("RESERVED",)), "reserved": ("IDLE", ("RESERVED",)),
    "plnd": ("IDLE", ("PLANNED",)), "planned": ("IDLE", ("PLANNED",)), "block": ("IDLE", ("BLOCKED",)),
    "blocked": ("IDLE", ("BLOCKED",)), "inval": ("UNKNOWN", ("INVALID_REG",)),
    "boot": ("UNKNOWN", ("REBOOT_REQUESTED",)), "reboot": ("UNKNOWN", ("REBOOT_REQUESTED",)),
}
Reboot = t.Literal["none", "requested", "issued"]


@dataclass(frozen=True)
class NodeState:
    """``JOBS`` is a flag of ours for words of sinfo that say so and hide the base."""

    base: str = "UNKNOWN"
    flags: frozenset[str] = frozenset()

    def has(self, *flags: str) -> bool:
        return any(flag in self.flags for flag in flags)

    @property
    def drain(self) -> bool:
        return "DRAIN" in self.flags

    @property
    def invalid(self) -> bool:
        return "INVALID_REG" in self.flags

    @property
    def responding(self) -> bool:
        return "NOT_RESPONDING" not in self.flags

    @property
    def reboot(self) -> Reboot:
        if "REBOOT_ISSUED" in self.flags:
            return "issued"
        return "requested" if "REBOOT_REQUESTED" in self.flags else "none"

    @property
    def jobs(self) -> bool:
        """Whether jobs hold the node, those that are ending included."""
        return self.base in _JOBS or self.has("COMPLETING", "JOBS")

    @property
    def drained(self) -> bool:
        """Only then hardware may be touched: idle, drained, nothing completing, and no reboot under way."""
        return self.drain and self.base == "IDLE" and not self.jobs and self.reboot == "none" and not self.has(
            "POWERING_UP", "POWERING_DOWN", "POWER_DOWN")

    @property
    def draining(self) -> bool:
        return self.drain and not self.drained

    @property
    def down(self) -> bool:
        return self.base in ("DOWN", "ERROR")

    @property
    def usable(self) -> bool:
        """Whether Slurm may start jobs here, now or when those that run have ended."""
        return self.base in ("IDLE", *_JOBS) and self.responding and self.reboot == "none" and not self.has(
            "DRAIN", "FAIL", "INVALID_REG", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN")

    def text(self) -> str:
        return "+".join([self.base, *sorted(self.flags - {"JOBS"})])


def _of(words: t.Iterable[str]) -> NodeState:
    base, flags = "UNKNOWN", set()
    for word in words:
        name = word.strip().upper()
        while name and name[-1] in _SUFFIXES:
            flags.add(_SUFFIXES[name[-1]])
            name = name[:-1]
        name = _FLAGS.get(name, name)
        if name in BASES:
            base = name
        elif name:
            flags.add(name)
    return NodeState(base, frozenset(flags))


def parse(value: str | t.Sequence[str] | None, flags: t.Sequence[str] = ()) -> NodeState:
    """``IDLE+DRAIN`` of scontrol, JSON's ``["IDLE", "DRAIN"]``, or older JSON's ``idle`` with ``state_flags``."""
    if isinstance(value, str):
        return _of([*value.split("+"), *flags])
    return _of([*(str(word) for word in value or ()), *flags])


def compact(text: str) -> NodeState:
    """A word of sinfo, short (``drng*``) or long (``draining*``); ValueError for one that Slurm does not have."""
    word, found = text.strip().lower(), set()
    while word and word[-1] in _SUFFIXES:
        found.add(_SUFFIXES[word[-1]])
        word = word[:-1]
    if word not in _WORDS:
        raise ValueError(f"got the node state {text!r}, wanted a word of sinfo")
    base, flags = _WORDS[word]
    return NodeState(base, frozenset({*flags, *found}))
