# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Xids in the kernel's log since boot, and what they ask for. Pure."""
from __future__ import annotations

import re
import typing as t
from datetime import datetime, timezone

from .._host.errors import Problem
from .model import Event, pci_address
from .xids import HINTS, xid

# ``NVRM: Xid (PCI:0000:9b:00): 119, pid=..., name=..., text`` [driver-slurm-k8s.md 1.9]; with MIG an instance follows
# the address. The SXids of NVSwitches are other lines.
_LINE = re.compile(r"^(?P<before>.*?)NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F:.]+)[^)]*\): (?P<xid>\d+), ?(?P<text>.*)$")
_ACTION = re.compile(r"GPU recovery action changed from .* to 0x[0-9a-fA-F]+ \((?P<action>[^)]+)\)")
_UNIX = re.compile(r"(\d{9,11})\.(\d+) ")
_STAMP = re.compile(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})\]|(\d{4}-\d\d-\d\dT\S+)")
_RECOVERY = 154
# An action that asks for nothing.
NO_ACTION = ("None", "N/A")


def _time(before: str) -> str | None:
    """Of journalctl -o short-unix, dmesg -T and dmesg --time-format=iso; None for seconds since boot."""
    match = _UNIX.match(before)
    if match:
        return datetime.fromtimestamp(int(match.group(1)), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    stamp = _STAMP.match(before)
    return (stamp.group(1) or stamp.group(2)) if stamp else None


def events(text: str) -> tuple[Event, ...]:
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            try:
                pci = pci_address(match["pci"])
            except ValueError:
                continue
            found.append(Event(pci, int(match["xid"]), _time(match["before"]), match["text"].strip()[:200]))
    return tuple(found)


def recovery_action(text: str) -> str | None:
    """What Xid 154 asks for."""
    match = _ACTION.search(text)
    return match["action"] if match else None


def history(found: t.Iterable[Event]) -> list[dict[str, t.Any]]:
    """One entry for each GPU and Xid, in the order of their first lines."""
    entries: dict[tuple[str, int], dict[str, t.Any]] = {}
    for event in found:
        row = xid(event.xid)
        entry = entries.setdefault((event.pci, event.xid), {
            "pci": event.pci, "xid": event.xid, "count": 0, "first": event.time, "last": None, "text": "",
            "meaning": row.meaning if row else None, "action": row.action if row else None,
            "source": row.source if row else None})
        entry.update(count=entry["count"] + 1, last=event.time, text=event.text)
    return list(entries.values())


def _problem(entry: t.Mapping[str, t.Any], wanted: str, hint: str) -> Problem:
    last = f", last {entry['last']}" if entry["last"] else ""
    meaning = f" ({entry['meaning']})" if entry["meaning"] else ""
    got = f"Xid {entry['xid']}{meaning} {entry['count']} times since boot{last}: {entry['text']}"
    return Problem(f"GPU {entry['pci']}", got, wanted, hint)


def findings(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[Problem]:
    """Those that are a matter of the node. Xid 154 says itself what it asks for; an unknown one is told."""
    found = []
    for entry in entries:
        if entry["xid"] == _RECOVERY:
            action = recovery_action(entry["text"])
            if action not in NO_ACTION:
                found.append(_problem(entry, "recovery action None", f"drain the node, then: {action or 'read it'}"))
        elif entry["action"] is None:
            found.append(_problem(entry, "an Xid that our table has", "look it up in NVIDIA's Xid catalogue"))
        elif HINTS[entry["action"]]:
            found.append(_problem(entry, "none", HINTS[entry["action"]]))
    return found
