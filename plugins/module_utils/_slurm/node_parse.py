# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Nodes from what scontrol and sinfo print, as JSON or text. Pure.

scontrol has ``--json`` from 23.02 on, sinfo from 21.08 on. The text of scontrol has values with blanks, so it is cut
at keys that Slurm has, and after ``Reason=`` only at those that Slurm prints behind it [SchedMD slurm-24.11
src/api/node_info.c, slurm_sprint_node_table]: anybody who may drain a node may write ``State=IDLE`` into the reason.
"""
from __future__ import annotations

import json
import re
import typing as t
from datetime import datetime

from . import reason, states
from .node_model import SlurmNode

_KEYS = (
    "NodeName", "Arch", "CpuBind", "CoresPerSocket", "CPUAlloc", "CPUEfctv", "CPUErr", "CPUTot", "CPULoad",
    "AvailableFeatures", "ActiveFeatures", "Gres", "GresDrain", "GresUsed", "NodeAddr", "NodeHostName", "BcastAddr",
    "Port", "Version", "OS", "RealMemory", "AllocMem", "FreeMem", "Sockets", "Boards", "CoreSpecCount", "CPUSpecList",
    "MemSpecLimit", "RestrictedCoresPerGPU", "State", "ThreadsPerCore", "TmpDisk", "Weight", "Owner", "MCS_label",
    "NextState", "Partitions", "BootTime", "SlurmdStartTime", "LastBusyTime", "ResumeAfterTime", "SuspendTime",
    "CfgTRES", "AllocTRES", "CapWatts", "CurrentWatts", "LowestJoules", "ConsumedJoules", "AveWatts",
    "ExtSensorsJoules", "ExtSensorsWatts", "ExtSensorsTemp", "Reason",
)
_BEFORE = re.compile(rf"(?:^|\s)({'|'.join(_KEYS)})=")
_BEHIND = re.compile(r"\s(Comment|Extra|InstanceId|InstanceType|ReservationName|TLSCertTokenSet|TLSCertLastRenewal|"
                     r"Topology|Parameters)=")
_STAMP = re.compile(r"(?s)(.*?)\s*\[([^\s\[\]@]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\](.*)")
_NOTHING = ("", "(null)", "N/A", "n/a", "None")
Data = t.Mapping[str, t.Any]


def cut(text: str) -> dict[str, str]:
    """One node's text as key and value; the first of a key counts."""
    found: dict[str, str] = {}
    head, separator, tail = text.partition(" Reason=")
    places = [*_BEFORE.finditer(head)]
    for place, following in zip(places, [*places[1:], None]):
        end = following.start() if following else len(head)
        found.setdefault(place[1], head[place.end():end].strip())
    if separator:
        stamp = _STAMP.match(tail)
        behind = _BEHIND.search(tail, stamp.start(4) if stamp else 0)
        found["Reason"] = (tail[:behind.start()] if behind else tail).strip()
    return found


def _none(value: t.Any) -> str:
    return "" if value is None or str(value) in _NOTHING else str(value)


def _number(value: t.Any) -> int | None:
    """A number of JSON, or of newer JSON's {"set": true, "number": 4}, or of text; None for none."""
    if isinstance(value, dict):
        return _number(value.get("number")) if value.get("set") and not value.get("infinite") else None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _time(value: t.Any) -> float | None:
    """Seconds since 1970; 0 is Slurm's word for never."""
    return float(number) if (number := _number(value)) else None


def local_time(text: str) -> float | None:
    """A time as the tools print it: this host's own."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").timestamp()
    except ValueError:
        return None


def _words(value: t.Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = _none(value).split(",")
    return tuple(str(word) for word in value or () if word)


def _text_node(text: str) -> SlurmNode:
    have = cut(text)
    if "NodeName" not in have or "State" not in have:
        raise ValueError("no NodeName= or no State=")
    raw, user, when = have.get("Reason", ""), "", None
    stamp = _STAMP.fullmatch(raw)
    if stamp:
        # Further lines of a reason come behind the stamp of its first one.
        raw, user, when = (stamp[1] + stamp[4]).strip(), stamp[2], local_time(stamp[3])
    return SlurmNode(
        have["NodeName"], states.parse(have["State"]), reason.parse(raw), user, when,
        _none(have.get("NodeHostName")), _none(have.get("NodeAddr")), _none(have.get("Gres")),
        _none(have.get("GresUsed")), _number(have.get("CPUTot")), _number(have.get("RealMemory")),
        _words(have.get("AvailableFeatures")), _words(have.get("Partitions")), _none(have.get("Version")),
        local_time(have.get("BootTime", "")), _none(have.get("NextState")), _none(have.get("CfgTRES")))


def text_nodes(text: str) -> list[SlurmNode]:
    """``scontrol show node``, with ``-o`` or without; ValueError for text that is not that."""
    blocks = re.split(r"(?m)^(?=NodeName=)", text)
    rest, found = blocks[0].strip(), [_text_node(" ".join(block.split("\n"))) for block in blocks[1:]]
    if rest and not found and not re.search(r"(?m)^(Node \S+ not found|No nodes in the system)$", rest):
        raise ValueError("no line with NodeName=")
    return found


def not_found(text: str) -> list[str]:
    """Names that ``scontrol show node`` says it does not know."""
    return re.findall(r"(?m)^Node (\S+) not found$", text)


def _json_node(one: Data) -> SlurmNode:
    if not isinstance(one.get("name"), str) or "state" not in one:
        raise ValueError("a node without name or state")
    flags, why = one.get("state_flags"), reason.parse(one.get("reason"))
    # JSON names root where there is no reason.
    user = _none(one.get("reason_set_by_user")) if why.raw else ""
    following = one.get("next_state_after_reboot")
    return SlurmNode(
        one["name"], states.parse(one["state"], flags if isinstance(flags, list) else ()),
        why, user, _time(one.get("reason_changed_at")),
        _none(one.get("hostname")), _none(one.get("address")), _none(one.get("gres")), _none(one.get("gres_used")),
        _number(one.get("cpus")), _number(one.get("real_memory")), _words(one.get("features")),
        _words(one.get("partitions")), _none(one.get("version") or one.get("slurmd_version")),
        _time(one.get("boot_time")), "+".join(_words(following)).upper(), _none(one.get("tres")))


def document(text: str, key: str) -> list[Data]:
    """The list ``key`` of an answer in JSON; ValueError where Slurm says errors or there is no such list."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError(f"got {type(data).__name__}, wanted an object")
    errors = [str(one.get("error") or one.get("description") or one) if isinstance(one, dict) else str(one)
              for one in data.get("errors") or []]
    entries = data.get(key)
    if errors or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("; ".join(errors) or f"no list {key}")
    return entries


def json_nodes(text: str) -> list[SlurmNode]:
    """``scontrol show node --json`` and ``sinfo --json`` of releases where that lists nodes (before 23.02)."""
    return [_json_node(one) for one in document(text, "nodes")]


def sinfo_json(text: str) -> dict[str, SlurmNode]:
    """``sinfo --json`` of both shapes. It may list more than it was asked for: the caller filters by name.

    From 23.02 on it has groups of nodes that are alike (key ``sinfo``), whose text is the group's.
    """
    try:
        return {node.name: node for node in json_nodes(text)}
    except ValueError:
        groups = document(text, "sinfo")
    found: dict[str, SlurmNode] = {}
    for group in groups:
        said = group.get("reason")
        why = said.get("description") if isinstance(said, dict) else said
        state = states.parse((group.get("node") or {}).get("state"))
        for name in (group.get("nodes") or {}).get("nodes") or ():
            found[str(name)] = SlurmNode(str(name), state, reason.parse(why))
    return found


SINFO_FORMAT = "%N|%T|%G|%H|%u|%E"


def sinfo_text(text: str) -> dict[str, SlurmNode]:
    """``sinfo -a -N -h -o SINFO_FORMAT``, the reason last as it may hold a bar; a node comes once per partition."""
    found: dict[str, SlurmNode] = {}
    for line in filter(str.strip, text.splitlines()):
        fields = line.split("|", 5)
        if len(fields) != 6:
            raise ValueError(f"got the line {line[:80]!r}, wanted six fields")
        name, state, gres, when, user, why = (field.strip() for field in fields)
        found[name] = SlurmNode(name, states.compact(state), reason.parse(why), "" if user == "Unknown" else user,
                                local_time(when), gres=_none(gres))
    return found
