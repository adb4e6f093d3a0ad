# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What slurm_render takes from an inventory and the fleet record, in one pass over the hosts that Slurm runs."""
from __future__ import annotations

import json
import re
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import record as records
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site.variables import plain
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import render_argspec, render_nodes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.model import Host
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.render_cluster import Inventory

CONTROLLER, DBD, COMPUTE = "slurm_controller", "slurm_dbd", "slurm_compute"
PREFIX = "slurm_"
_RESERVE = f"{PREFIX}memory_reserve_mib"
_VARIABLES = (*render_nodes.VARIABLES, _RESERVE)
_HOUR = 3600
Values = dict[str, t.Any]


def given(args: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any],
          template: t.Callable[[t.Any], t.Any]) -> Values:
    """The options of a task, and for those that it does not give the variables of the same name with ``slurm_``."""
    found = {name: plain(template(variables[f"{PREFIX}{name}"])) for name in render_argspec.RENDER
             if f"{PREFIX}{name}" in variables}
    found.update({name: value for name, value in args.items() if value is not None})
    # An empty list of partitions is a role's way to say nothing.
    return {name: value for name, value in found.items() if value is not None and (name, value) != ("partitions", [])}


def _values(hostvars: t.Any, host: str) -> Values:
    """The variables that are looked at. Templates are rendered only where there are some, as that takes its time."""
    raw = hostvars.raw_get(host)
    found = {}
    for name in _VARIABLES:
        if name in raw:
            value = plain(raw[name])
            text = json.dumps(value)
            found[name] = plain(hostvars[host].get(name)) if "{{" in text or "{%" in text else value
    return found


def _hosts(hostvars: t.Any, names: t.Sequence[str]) -> tuple[Host, ...]:
    return tuple(Host(name, str(_values(hostvars, name).get("slurm_node_address") or "")) for name in names)


def _records(folder: str | None, max_age_hours: float) -> tuple[dict[str, Values], set[str]]:
    if not folder:
        return {}, set()
    loaded = store.load(Path(folder), "host_info")
    now = datetime.now(timezone.utc)
    ages = {host: records.age_seconds(record, now) for host, record in loaded.items()}
    stale = {host for host, age in ages.items() if age is None or age > max_age_hours * _HOUR}
    return {host: record["data"] for host, record in loaded.items()}, stale


def _walk(group: t.Any) -> t.Iterator[str]:
    yield from (str(host) for host in group.hosts)
    for child in group.child_groups:
        yield from _walk(child)


def ordered(hostvars: t.Any, groups: t.Mapping[str, t.Sequence[str]], name: str) -> list[str]:
    """Members of a group as they stand in the inventory.

    The engine's own list of a group whose members come through two levels of groups has another order in each run, as
    it goes through sets; and another order would be another configuration.
    """
    known = getattr(getattr(hostvars, "_inventory", None), "groups", {})
    if name not in known:
        return [str(host) for host in groups.get(name, ())]
    return list(dict.fromkeys(_walk(known[name])))


def inventory(hostvars: t.Any, groups: t.Mapping[str, t.Sequence[str]], folder: str | None,
              args: t.Mapping[str, t.Any]) -> Inventory:
    """Members and their order come from the groups, whatever a limit leaves of the play."""
    members = {str(name): [str(host) for host in hosts] for name, hosts in groups.items()}
    hosts, controllers, dbd = (ordered(hostvars, groups, name) for name in (COMPUTE, CONTROLLER, DBD))
    pattern, leaves = re.compile(args["leaf_groups"]), {}
    for name, inside in members.items():
        if pattern.fullmatch(name):
            leaves.update({host: name for host in inside if host not in leaves})
    known, stale = _records(folder if args["use_records"] else None, args["max_age_hours"])
    return Inventory({host: _values(hostvars, host) for host in hosts}, members, _hosts(hostvars, controllers),
                     _hosts(hostvars, dbd), leaves, known, stale)
