# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Blocks and switches of a cluster, and the files that tell Slurm of them. Pure.

Up to 24.11 there is one topology for the whole cluster, and a node outside of every block is never picked [3.4]. So
nodes without an NVLink domain get blocks, too. From 25.05 on each partition has its own (topology.yaml).
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import hostlist
from .model import HEADER, Cluster, Finding, Node
from .versions import has

# Names within topology.yaml.
BLOCKS, TREE, FLAT = "nvlink", "leaves", "flat"
# Of a complete domain of 18 trays 16 are planned with, so that two may be away: `--segment=16` [3.4].
_SPARE_OF = 9


@dataclass(frozen=True)
class Plan:
    """``kind`` as it is after `auto`; ``partitions`` names the topology of those that do not have the default one."""

    kind: str
    blocks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    block_size: int = 0
    switches: tuple[tuple[str, tuple[str, ...]], ...] = ()
    partitions: t.Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def _by(nodes: t.Iterable[Node], key: t.Callable[[Node], str]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(key(node), []).append(node)
    return found


def kind_of(cluster: Cluster) -> tuple[str, list[Finding]]:
    asked, blocks = cluster.topology, has(cluster.version, "block_topology")
    if asked == "block" and not blocks:
        return "flat", [Finding("error", "slurm_topology", f"block with Slurm {cluster.version}", "24.05 or later",
                                "or slurm_topology: auto")]
    if asked == "block" and not cluster.has_domains:
        return "flat", [Finding("error", "slurm_topology", "block, and no host with nvlink_domain", "NVLink domains",
                                "or slurm_topology: auto")]
    if asked != "auto":
        return asked, []
    if not cluster.has_domains:
        return "flat", []
    if blocks:
        return "block", []
    lost = Finding("warning", "slurm_version", f"{cluster.version}, which knows no NVLink domains and no IMEX",
                   "24.05 or later for nodes with NVLink domains", "no topology/block and no switch/nvidia_imex")
    leaves = {node.leaf for node in cluster.nodes}
    return ("tree" if len(leaves) > 1 and all(leaves) else "flat"), [lost]


def _block_size(cluster: Cluster, domains: t.Mapping[str, list[Node]]) -> tuple[int, list[Finding]]:
    """As large as the smallest complete domain without its spares, and no larger than any domain."""
    smallest = min(len(nodes) for nodes in domains.values())
    if cluster.block_size:
        wanted = f"slurm_block_size ({cluster.block_size}) or more"
        return cluster.block_size, [
            Finding("error", f"nvlink_domain {name}", f"{len(nodes)} nodes", wanted,
                    "slurmctld refuses a block that is smaller than the base size: lower slurm_block_size")
            for name, nodes in domains.items() if len(nodes) < cluster.block_size]
    complete = max(max(node.domain_size for node in nodes) or len(nodes) for nodes in domains.values())
    planned = complete - complete // _SPARE_OF
    if smallest >= planned:
        return planned, []
    names = [name for name, nodes in domains.items() if len(nodes) < planned]
    return smallest, [Finding("warning", f"nvlink_domain {', '.join(names)}", f"{smallest} nodes in the smallest",
                              f"{planned} of {complete}", f"the base size of all blocks is {smallest} because of it")]


def _rest(nodes: t.Sequence[Node], size: int) -> list[tuple[str, tuple[str, ...]]]:
    """Nodes without a domain in blocks of at least the base size: a class has its own, what is left shares one."""
    found, left = [], []
    for name, members in _by(nodes, lambda node: node.node_class or "nodes").items():
        names = [node.name for node in members]
        count = len(names) // size
        for number in range(count):
            end = len(names) if number == count - 1 else (number + 1) * size
            found.append((f"{name}-{number + 1}", tuple(names[number * size:end])))
        if not count:
            left += names
    if len(left) >= size:
        found.append(("rest", tuple(left)))
    elif left and found:
        found[-1] = (found[-1][0], (*found[-1][1], *left))
    elif left:
        found.append(("", tuple(left)))
    return found


def _blocks(cluster: Cluster) -> Plan:
    inside = _by((node for node in cluster.nodes if node.domain), lambda node: node.domain)
    outside = [node for node in cluster.nodes if not node.domain]
    size, findings = _block_size(cluster, inside)
    blocks = [(name, tuple(node.name for node in nodes)) for name, nodes in inside.items()]
    if has(cluster.version, "topology_yaml"):
        names = {node.name for node in cluster.nodes if node.domain}
        partitions = {part.name: BLOCKS for part in cluster.partitions if part.nodes and set(part.nodes) <= names}
        mixed = [part.name for part in cluster.partitions if part.name not in partitions and set(part.nodes) & names]
        findings += [Finding("note", f"partition {name}", "nodes inside and outside of NVLink domains",
                             "one or the other", "it is planned without domains") for name in mixed]
        return Plan("block", tuple(blocks), size, partitions=partitions, findings=tuple(findings))
    for name, members in _rest(outside, size):
        if name:
            blocks.append((name, members))
            continue
        # Too few for a block of their own. With a smaller base size every domain would be planned badly for them.
        last, own = blocks[-1]
        blocks[-1] = (last, (*own, *members))
        findings.append(Finding("warning", f"block {last}", f"also {hostlist.compress(members)}, of no NVLink domain",
                                f"{size} nodes or more for a block of their own",
                                "harmless, as no partition has both; or Slurm 25.05, or slurm_topology: tree"))
    return Plan("block", tuple(blocks), size, findings=tuple(findings))


def _tree(cluster: Cluster) -> Plan:
    leaves = _by(cluster.nodes, lambda node: node.leaf)
    lost = [node.name for node in leaves.pop("", [])]
    findings = [Finding("error", hostlist.compress(lost), "no leaf group", "a group of its leaf switch",
                        "slurm_leaf_groups; a node without a switch is never picked")] if lost else []
    switches = [(name, tuple(node.name for node in nodes)) for name, nodes in leaves.items()]
    return Plan("tree", switches=tuple(switches), findings=tuple(findings))


def plan(cluster: Cluster) -> Plan:
    kind, findings = kind_of(cluster)
    made = {"block": _blocks, "tree": _tree}.get(kind, lambda _cluster: Plan("flat"))(cluster)
    return Plan(made.kind, made.blocks, made.block_size, made.switches, made.partitions, (*findings, *made.findings))


# -- texts ------------------------------------------------------------------------------------------------


def _conf(plan: Plan) -> str:
    lines = [HEADER]
    if plan.kind == "block":
        lines += [f"BlockName={name} Nodes={hostlist.compress(nodes)}" for name, nodes in plan.blocks]
        lines.append(f"BlockSizes={plan.block_size}")
    else:
        lines += [f"SwitchName={name} Nodes={hostlist.compress(nodes)}" for name, nodes in plan.switches]
        if len(plan.switches) > 1:
            lines.append(f"SwitchName=spine Switches={','.join(name for name, _nodes in plan.switches)}")
    return "\n".join(lines) + "\n"


def _yaml(plan: Plan) -> str:
    """By hand, as managed nodes have no YAML library; every value is a name, a number or a host list."""
    lines = [HEADER, "---"]
    if plan.kind == "block":
        lines += [f"- topology: {FLAT}", "  cluster_default: true", "  flat: true",
                  f"- topology: {BLOCKS}", "  cluster_default: false", "  block:", "    block_sizes:",
                  f"      - {plan.block_size}", "    blocks:"]
        for name, nodes in plan.blocks:
            lines += [f'      - block: "{name}"', f'        nodes: "{hostlist.compress(nodes)}"']
    else:
        lines += [f"- topology: {TREE}", "  cluster_default: true", "  tree:", "    switches:"]
        if len(plan.switches) > 1:
            lines += ['      - switch: "spine"',
                      f'        children: "{",".join(name for name, _nodes in plan.switches)}"']
        for name, nodes in plan.switches:
            lines += [f'      - switch: "{name}"', f'        nodes: "{hostlist.compress(nodes)}"']
    return "\n".join(lines) + "\n"


def files(cluster: Cluster, plan: Plan) -> dict[str, str]:
    if plan.kind == "flat":
        return {}
    if has(cluster.version, "topology_yaml"):
        return {"topology.yaml": _yaml(plan)}
    return {"topology.conf": _conf(plan)}
