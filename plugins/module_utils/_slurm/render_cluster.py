# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A cluster from the variables of an inventory and the fleet record: its files, and what is wrong with it. Pure.

Nothing here is quadratic in the number of hosts: 10,000 are rendered in seconds.
"""
from __future__ import annotations

import dataclasses
import re
import typing as t
from dataclasses import dataclass, field

from . import check, hostlist, render_conf, render_files, render_topology, versions
from .model import (
    CGROUPS,
    OWNERSHIPS,
    TOPOLOGIES,
    Cluster,
    Finding,
    Host,
    Partition,
    Settings,
)
from .render_nodes import Findings, node

Values = t.Mapping[str, t.Any]
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TIME = re.compile(r"INFINITE|UNLIMITED|[0-9]+(?:-[0-9]+)?(?::[0-9]+){0,2}", re.IGNORECASE)


@dataclass(frozen=True)
class Inventory:
    """``hosts`` has the variables of each compute host in the inventory's order, ``groups`` the members of each group.

    ``records`` are the data of host_info by host, ``stale`` the hosts whose record is too old.
    """

    hosts: t.Mapping[str, Values]
    groups: t.Mapping[str, t.Sequence[str]]
    controllers: tuple[Host, ...]
    dbd: tuple[Host, ...] = ()
    leaves: t.Mapping[str, str] = field(default_factory=dict)
    records: t.Mapping[str, Values] = field(default_factory=dict)
    stale: t.Collection[str] = ()


@dataclass(frozen=True)
class Rendered:
    cluster: Cluster | None
    plan: render_topology.Plan
    files: dict[str, str]
    findings: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    def result(self) -> dict[str, t.Any]:
        cluster = self.cluster
        return {
            "files": self.files, "sha256": render_files.digests(self.files),
            "absent": render_files.absent(self.files) if cluster and cluster.ownership == "whole" else [],
            "findings": [finding.as_dict() for finding in self.findings],
            "nodes": {one.name: {"class": one.node_class, "cpus": one.cpus, "memory_mib": one.memory_mib,
                                 "gpus": one.gpus, "domain": one.domain, "leaf": one.leaf}
                      for one in (cluster.nodes if cluster else ())},
            "version": str(cluster.version) if cluster else "",
            "topology": {"kind": self.plan.kind, "block_size": self.plan.block_size,
                         "blocks": {name: list(members) for name, members in self.plan.blocks},
                         "switches": {name: list(members) for name, members in self.plan.switches}},
        }


def _options(where: str, given: t.Any, refused: t.Collection[str], bad: list[Finding]) -> dict[str, str]:
    """Extra keys as texts; YAML's true and false are Slurm's yes and no."""
    if not isinstance(given, t.Mapping):
        bad.append(Finding("error", where, repr(given), "a dictionary of Slurm's keys"))
        return {}
    found = {}
    for key, value in given.items():
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        if not _KEY.fullmatch(str(key)):
            bad.append(Finding("error", where, repr(key), "a key of slurm.conf"))
        elif str(key).lower() in {name.lower() for name in refused}:
            bad.append(Finding("error", f"{where}.{key}", "a key that follows from the inventory", "another key"))
        elif "\n" in text or "#" in text or not text:
            bad.append(Finding("error", f"{where}.{key}", repr(text), "one line without #"))
        else:
            found[str(key)] = text
    return found


def _partition(entry: t.Any, place: str, inventory: Inventory, bad: list[Finding]) -> Partition | None:
    if not isinstance(entry, t.Mapping) or not _WORD.fullmatch(str(entry.get("name", ""))):
        bad.append(Finding("error", place, repr(entry), "name, groups, and maybe default, max_time, options"))
        return None
    groups = [str(group) for group in entry.get("groups") or ()]
    members = {host for group in groups for host in inventory.groups.get(group, ())}
    unknown = [group for group in groups if group not in inventory.groups]
    if unknown and not members:
        # The defaults name classes that a site need not have.
        bad.append(Finding("note", f"partition {entry['name']}", f"no group {', '.join(unknown)} in the inventory",
                           "groups with compute hosts", "it is left out"))
    max_time = str(entry.get("max_time") or "INFINITE")
    if not _TIME.fullmatch(max_time):
        bad.append(Finding("error", f"{place}.max_time", max_time, "INFINITE, or a time such as 1-00:00:00"))
        return None
    options = _options(f"{place}.options", entry.get("options") or {}, render_conf.PARTITION_OWNED, bad)
    names = tuple(host for host in inventory.hosts if host in members)
    return Partition(str(entry["name"]), names, bool(entry.get("default")), max_time, options, tuple(groups))


def _partitions(args: Values, inventory: Inventory, bad: list[Finding]) -> tuple[Partition, ...]:
    made = [_partition(entry, f"slurm_partitions[{place}]", inventory, bad)
            for place, entry in enumerate(args["partitions"])]
    found = tuple(part for part in made if part and part.nodes)
    names = [part.name for part in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        bad.append(Finding("error", f"partition {name}", "two entries", "one"))
    defaults = [part.name for part in found if part.default]
    if len(defaults) > 1:
        bad.append(Finding("error", "slurm_partitions", f"the defaults {', '.join(defaults)}", "one default partition"))
    inside = {name for part in found for name in part.nodes}
    outside = [name for name in inventory.hosts if name not in inside]
    if outside:
        bad.append(Finding("warning", f"{hostlist.compress(outside)}", "no partition", "one",
                           "no job can run there; add a group of theirs to slurm_partitions"))
    return found


def _settings(args: Values, bad: list[Finding]) -> Settings:
    names = ("cgroup", "mem_spec_limit_mib", "health_program", "prolog", "epilog", "reboot_program", "config_dir",
             "state_dir", "user", "database_host", "database_user", "database_name")
    return Settings(**{name: args[name] for name in names}, health_interval_seconds=args["health_interval"],
                    options=_options("slurm_options", args["options"], (), bad))


def _names(args: Values, inventory: Inventory, bad: list[Finding]) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", args["cluster_name"]):
        bad.append(Finding("error", "slurm_cluster_name", args["cluster_name"] or "nothing",
                           "up to 40 of a-z, 0-9, _ and -", "the accounting database has it as part of table names"))
    if args["ownership"] == "whole" and not inventory.controllers:
        bad.append(Finding("error", "group slurm_controller", "no host", "one, or two with a backup"))
    if len(inventory.controllers) > 2:
        bad.append(Finding("warning", "group slurm_controller", f"{len(inventory.controllers)} hosts",
                           "one, or two with a backup"))
    if len(inventory.dbd) > 1:
        bad.append(Finding("error", "group slurm_dbd", f"{len(inventory.dbd)} hosts", "one or none"))
    if not inventory.hosts:
        bad.append(Finding("error", "group slurm_compute", "no host", "the hosts that Slurm shall run"))
    for name, choices in (("topology", TOPOLOGIES), ("cgroup", CGROUPS), ("ownership", OWNERSHIPS)):
        if args[name] not in choices:
            bad.append(Finding("error", f"slurm_{name}", str(args[name]), f"one of {', '.join(choices)}"))


def _named(inventory: Inventory, bad: list[Finding]) -> Inventory:
    """Without hosts whose names Slurm cannot have."""
    strange = [host for host in inventory.hosts if not _WORD.fullmatch(host)]
    bad += [Finding("error", host, "other characters", "a name of letters, digits, dot, dash, underscore")
            for host in strange]
    if not strange:
        return inventory
    left = {host: values for host, values in inventory.hosts.items() if host not in strange}
    return dataclasses.replace(inventory, hosts=left)


def _nodes(args: Values, inventory: Inventory) -> tuple[tuple[t.Any, ...], list[Finding]]:
    found, nodes = Findings(), []
    for host, values in inventory.hosts.items():
        record = inventory.records.get(host)
        if record is None and args["use_records"]:
            found.add("note", host, "fleet record", "none", "one of host_info", "run playbooks/discover.yml")
        elif host in inventory.stale:
            found.add("note", host, "fleet record", "an old one", "one of today", "run playbooks/discover.yml")
        reserve = values.get("slurm_memory_reserve_mib", args["memory_reserve_mib"])
        made = node(host, values, record, int(reserve), inventory.leaves.get(host, ""), found)
        if made is not None:
            nodes.append(made)
    return tuple(nodes), found.all()


def _memory(cluster: Cluster) -> list[Finding]:
    """A node with less memory than most of its class, and a limit that leaves nothing."""
    found: list[Finding] = []
    classes: dict[str, list[t.Any]] = {}
    for one in cluster.nodes:
        classes.setdefault(one.node_class, []).append(one)
    for name, nodes in classes.items():
        sizes = sorted(one.memory_mib for one in nodes)
        usual = sizes[len(sizes) // 2]
        short = [one.name for one in nodes if one.memory_mib < usual - 1024]
        if short:
            found.append(Finding("warning", f"{hostlist.compress(short)}: RealMemory", f"less than {usual} MiB",
                                 f"as most of {name}", "a memory module may be missing"))
        if sizes[0] <= render_conf.mem_spec_limit(cluster):
            found.append(Finding("error", "slurm_mem_spec_limit_mib", str(cluster.settings.mem_spec_limit_mib),
                                 f"less than the memory of {name} ({sizes[0]} MiB)"))
    return found


def _include_notes(cluster: Cluster) -> list[Finding]:
    """What the site's own files must say, as we do not write them."""
    needs = [f"Include {render_conf.NODES}", f"Include {render_conf.PARTITIONS}"]
    needs += ["GresTypes=gpu"] if cluster.has_gpus else []
    found = [Finding("note", "slurm.conf of the site", "a file that is not ours", "; ".join(needs))]
    if cluster.has_gpus:
        found.append(Finding("note", "gres.conf of the site", "a file that is not ours",
                             f"Include {render_files.OUR_GRES}"))
    return found


def render(args: Values, inventory: Inventory) -> Rendered:
    """Findings of severity error mean that the files must not be installed; some may be missing."""
    bad: list[Finding] = []
    _names(args, inventory, bad)
    inventory = _named(inventory, bad)
    settings, partitions = _settings(args, bad), _partitions(args, inventory, bad)
    try:
        version = versions.parse(args["version"])
    except versions.VersionError as error:
        bad.append(Finding("error", "slurm_version", str(error), "what `slurmctld -V` says",
                           is_unknown=not args["version"]))
        version = versions.OLDEST
    if version < versions.OLDEST:
        bad.append(Finding("error", "slurm_version", str(version), f"{versions.OLDEST} or later"))
    nodes, findings = _nodes(args, inventory)
    bad += findings
    known = {one.name for one in nodes}
    # A node that cannot be described is an error already; the rest is rendered, so that all errors show at once.
    partitions = tuple(Partition(part.name, tuple(name for name in part.nodes if name in known), part.default,
                                 part.max_time, part.options, part.groups) for part in partitions)
    cluster = Cluster(args["cluster_name"], version, inventory.controllers, nodes, partitions,
                      inventory.dbd[0] if inventory.dbd else None, args["topology"], int(args["block_size"] or 0),
                      args["ownership"], settings)
    # The topology belongs to whoever owns slurm.conf.
    plan = render_topology.plan(cluster) if cluster.ownership == "whole" else render_topology.Plan("flat")
    bad += plan.findings
    bad += [Finding("error", f"slurm_options.{key}", "a key that follows from the inventory", "another key",
                    "the roles' own variables set it") for key in render_conf.refused(cluster, plan)]
    bad += _memory(cluster) + (_include_notes(cluster) if cluster.ownership == "include" else [])
    files = render_files.files(cluster, plan)
    return Rendered(cluster, plan, files, bad + check.texts(files))
