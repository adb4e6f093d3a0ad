# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a difference between two sets of Slurm's files needs: nothing, `scontrol reconfigure`, or a restart. Pure.

The rows are those of driver-slurm-k8s 3.5. A key without a row is safe with a restart before 23.11 (jobs outlive one),
and with a reconfigure since then, as the daemons start again by themselves.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

from . import config_parse, hostlist
from .config_model import Action, stronger
from .versions import Version, has

Files = t.Mapping[str, str]
Kind = t.Literal["key", "nodes", "node", "partition", "gres", "topology", "cgroup", "dbd", "file"]
# Lines that are compared as a whole, and not key by key.
_LINES = ("nodename", "partitionname", "slurmctldhost", "nodeset", "downnodes", "include")
_CONF = ("slurm.conf", "aidc-nodes.conf", "aidc-partitions.conf")
_KINDS: dict[str, Kind] = {"gres.conf": "gres", "aidc-gres.conf": "gres", "topology.conf": "topology",
                           "topology.yaml": "topology", "cgroup.conf": "cgroup", "slurmdbd.conf": "dbd"}


@dataclass(frozen=True)
class Row:
    """(slurmctld, slurmd) before 23.11 and since. slurmctld's reconfigure reaches each slurmd by itself."""

    old: tuple[Action, Action]
    new: tuple[Action, Action]
    source: str


_RECONFIGURE: tuple[Action, Action] = ("reconfigure", "none")
_CONTROLLER: tuple[Action, Action] = ("restart", "none")
_ALL: tuple[Action, Action] = ("restart", "restart")
_LIMITS = Row(_RECONFIGURE, _RECONFIGURE, "3.5: partitions, limits, timeouts, Prolog")
_DEFAULT = Row(_CONTROLLER, _RECONFIGURE, "3.5: SelectTypeParameters, SchedulerType ... and what has no row")
_PLUGINS = Row(_ALL, _RECONFIGURE, "3.5: GresTypes, SelectType, PluginDir")
_PORTS = Row(_ALL, _ALL, "3.5: listening ports and auth type need a restart in every version")
_SWITCH = Row(_ALL, _ALL, "3.5: SwitchType, all daemons; running jobs are affected: drain first")
KEYS: dict[str, Row] = {
    **dict.fromkeys(("prolog", "epilog", "prologslurmctld", "epilogslurmctld", "healthcheckprogram",
                     "healthcheckinterval", "healthchecknodestate", "rebootprogram", "returntoservice", "resumetimeout",
                     "slurmctldtimeout", "slurmdtimeout", "messagetimeout", "killwait", "waittime", "inactivelimit",
                     "minjobage", "batchstarttimeout", "prologepilogtimeout", "unkillablesteptimeout", "overtimelimit",
                     "propagateresourcelimitsexcept", "slurmctlddebug", "slurmddebug", "debugflags"), _LIMITS),
    **dict.fromkeys(("grestypes", "selecttype", "plugindir", "taskplugin"), _PLUGINS),
    **dict.fromkeys(("slurmctldport", "slurmdport", "authtype", "authalttypes", "credtype", "clustername", "slurmuser"),
                    _PORTS),
    "switchtype": _SWITCH,
}
KINDS: dict[Kind, Row] = {
    "partition": _LIMITS,
    "node": Row(_ALL, _RECONFIGURE, "3.5: NodeName lines"),
    # From 23.11 to 24.05 they need the restart, too: see decide().
    "nodes": Row(_ALL, _RECONFIGURE, "3.5: add or remove nodes"),
    "gres": Row(_ALL, _RECONFIGURE, "3.5: gres.conf; drain first if a count changes"),
    "topology": Row(_RECONFIGURE, _RECONFIGURE, "topology.conf(5): a reconfigure is enough"),
    "cgroup": Row(_RECONFIGURE, _RECONFIGURE, "cgroup.conf(5): a reconfigure is enough"),
    "file": _DEFAULT,
}


@dataclass(frozen=True)
class Change:
    """``text`` says it in words; ``key`` in lower case for one of slurm.conf, with its value before."""

    kind: Kind
    text: str
    key: str = ""
    before: str = ""
    after: str = ""

    @property
    def row(self) -> Row:
        return KEYS.get(self.key, _DEFAULT) if self.kind == "key" else KINDS[self.kind]


def _lines(files: Files) -> list[config_parse.Line]:
    found = []
    for name in _CONF:
        try:
            found += config_parse.lines(files.get(name, ""))
        except config_parse.ConfError:
            # Somebody's broken file: all of the new one is a change.
            continue
    return found


def _keys(lines: t.Iterable[config_parse.Line]) -> dict[str, str]:
    return {key: value for line in lines if line.first not in _LINES for key, value in line.pairs}


def _expanded(text: str) -> list[str]:
    try:
        return hostlist.expand(text)
    except hostlist.HostlistError:
        return [text]


def _nodes(lines: t.Iterable[config_parse.Line]) -> dict[str, str]:
    """Each node to all that is said of it; of a list of addresses it has one."""
    found: dict[str, str] = {}
    for line in lines:
        if line.first == "nodename":
            names, addresses = _expanded(line.pairs[0][1]), _expanded(line.get("nodeaddr") or "")
            said = " ".join(f"{key}={value}" for key, value in line.pairs[1:] if key != "nodeaddr")
            own = addresses if len(addresses) == len(names) else [""] * len(names)
            found.update({name: f"{address} {said}" for name, address in zip(names, own)})
    return found


def _partitions(lines: t.Iterable[config_parse.Line]) -> dict[str, str]:
    return {line.pairs[0][1]: " ".join(f"{key}={value}" for key, value in line.pairs[1:])
            for line in lines if line.first == "partitionname"}


def _names(names: t.Iterable[str]) -> str:
    try:
        return hostlist.compress(names)
    except hostlist.HostlistError:
        return ", ".join(names)


def _conf(old: Files, new: Files) -> list[Change]:
    before, after = _lines(old), _lines(new)
    was, will = _keys(before), _keys(after)
    found = [Change("key", f"{key}: {was.get(key) or 'not set'} -> {will.get(key) or 'not set'}", key, was.get(key, ""),
                    will.get(key, ""))
             for key in sorted(was.keys() | will.keys()) if was.get(key) != will.get(key)]
    was, will = _nodes(before), _nodes(after)
    for text, names in (("new", [name for name in will if name not in was]),
                        ("gone", [name for name in was if name not in will])):
        if names:
            found.append(Change("nodes", f"nodes {text}: {_names(names)}"))
    other = [name for name in will if name in was and was[name] != will[name]]
    if other:
        found.append(Change("node", f"nodes that differ: {_names(other)}"))
    was, will = _partitions(before), _partitions(after)
    found += [Change("partition", f"partition {name}") for name in sorted(was.keys() | will.keys())
              if was.get(name) != will.get(name)]
    for first in ("slurmctldhost", "nodeset", "downnodes", "include"):
        one, two = ([line.pairs for line in lines if line.first == first] for lines in (before, after))
        if one != two:
            found.append(Change("key", first, first))
    return found


def _is_said(text: str) -> list[str]:
    """Without comments and empty lines, which nobody reads."""
    return [line.split("#")[0].rstrip() for line in text.splitlines() if line.split("#")[0].strip()]


def changes(old: Files, new: Files) -> list[Change]:
    """``old`` and ``new`` are all files of ours before and after; one that is not there is missing."""
    found = _conf(old, new)
    for name in sorted((old.keys() | new.keys()) - set(_CONF)):
        if _is_said(old.get(name, "")) != _is_said(new.get(name, "")) or (name in old) != (name in new):
            found.append(Change(_KINDS.get(name, "file"), name))
    return found


def _row(change: Change, version: Version) -> tuple[Action, Action]:
    row = change.row
    if change.kind == "nodes" and not has(version, "reconfigure_nodes"):
        return row.old
    return row.new if has(version, "reconfigure_restarts") else row.old


def decide(version: Version, found: t.Iterable[Change]) -> tuple[Action, Action, list[str]]:
    """What slurmctld needs, what each slurmd needs, and why."""
    controller: Action = "none"
    compute: Action = "none"
    why = []
    for change in found:
        if change.kind == "dbd":
            continue
        one, two = _row(change, version)
        controller, compute = stronger(controller, one), stronger(compute, two)
        why.append(f"{change.text}: {one}" + (", slurmd too" if two != "none" else ""))
    return controller, compute, why
