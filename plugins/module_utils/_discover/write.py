# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The inventory skeleton as texts. Pure. YAML is written here, as the comments in it matter and hosts are many."""
from __future__ import annotations

import json
import re
import typing as t
from collections import Counter

from .model import NodeClass
from .propose import Fleet, Proposal

CHANGEME = "CHANGEME"
# Ways to the host that the run itself used; no password is among them.
CONNECTION = ("ansible_host", "ansible_port", "ansible_user", "ansible_connection", "ansible_ssh_common_args",
              "ansible_control_path_dir", "ansible_python_interpreter")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_HEAD = "---\n# Written by playbooks/discover.yml from what the hosts are. {more}\n"
Connections = t.Mapping[str, t.Mapping[str, t.Any]]


def scalar(value: t.Any) -> str:
    """One value on one line; JSON is YAML."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return json.dumps(value)


def flow(values: t.Mapping[str, t.Any]) -> str:
    inner = ", ".join(f"{key}: {scalar(value)}" for key, value in values.items())
    return f"{{{inner}}}"


def rail_lines(pcis: t.Sequence[str], pad: str = "") -> list[str]:
    """Addresses quoted: without quotes YAML 1.1 reads some as numbers."""
    return [f"{pad}  - {{rail: {number}, pci: {json.dumps(pci)}}}" for number, pci in enumerate(pcis)]


def _pcis(one: Proposal) -> tuple[str, ...]:
    return tuple(rail.pci for rail in one.rails)


def common_rails(members: t.Sequence[Proposal]) -> tuple[str, ...]:
    """The rails that most hosts of the class have; the longer list wins where two are as frequent."""
    counts = Counter(_pcis(one) for one in members)
    return max(counts, key=lambda pcis: (counts[pcis], len(pcis)), default=())


def _members(fleet: Fleet, group: str) -> list[Proposal]:
    return [one for one in fleet.proposals if one.group == group]


def _own_rails(one: Proposal, common: t.Sequence[str]) -> bool:
    """A host that only lacks a rail of its class has a fault, not rails of its own."""
    return not set(_pcis(one)) <= set(common)


def host_variables(one: Proposal, members: t.Sequence[Proposal]) -> dict[str, t.Any]:
    found: dict[str, t.Any] = {}
    if one.node_class is None:
        return found
    if one.node_class.nvlink_domain_trays:
        found["nvlink_domain"] = one.nvlink_domain or CHANGEME
    if one.rails:
        found["rail_network_node_index"] = CHANGEME if one.node_index is None else one.node_index
    # Where no host of the class has a leaf, site_file says it once for all; a group's file outranks a leaf's variables.
    if one.rails and one.leaf is None and any(member.leaf for member in members):
        found["rail_network_subnets"] = CHANGEME
    if one.rails and _own_rails(one, common_rails(members)):
        found["mlx5_port_rails"] = [{"rail": number, "pci": pci} for number, pci in enumerate(_pcis(one))]
    return found


def _shared(fleet: Fleet, connections: Connections) -> dict[str, t.Any]:
    """Connection variables that all hosts have alike."""
    all_of = [connections.get(one.host.name, {}) for one in fleet.proposals]
    return {key: all_of[0][key] for key in CONNECTION
            if all_of and all(key in one and one[key] == all_of[0].get(key) for one in all_of)}


def _host_lines(one: Proposal, members: t.Sequence[Proposal], own: t.Mapping[str, t.Any]) -> list[str]:
    values = {**own, **host_variables(one, members)}
    rails = values.pop("mlx5_port_rails", None)
    if rails is None:
        return [f"        {scalar(one.host.name)}: {flow(values) if values else ''}".rstrip()]
    lines = [f"        {scalar(one.host.name)}:"]
    lines += [f"          {key}: {scalar(value)}" for key, value in values.items()]
    return [*lines, "          mlx5_port_rails:", *rail_lines([rail["pci"] for rail in rails], " " * 10)]


def hosts_file(fleet: Fleet, connections: Connections) -> str:
    shared = _shared(fleet, connections)
    lines = ["all:"]
    if shared:
        lines += ["  vars:", *(f"    {key}: {scalar(value)}" for key, value in shared.items())]
    lines.append("  children:")
    for group in dict.fromkeys(one.group for one in fleet.proposals):
        members = _members(fleet, group)
        lines += [f"    {group}:", "      hosts:"]
        for one in members:
            own = {key: value for key, value in connections.get(one.host.name, {}).items()
                   if key in CONNECTION and key not in shared}
            lines += [f"        # {one.why}"] if one.node_class is None else []
            lines += _host_lines(one, members, own)
    for leaf, subnets in fleet.leaves.items():
        lines += [f"    {leaf}:", "      hosts:"]
        mine = [one for one in fleet.proposals if one.leaf == leaf]
        lines += [f"        {scalar(one.host.name)}:" for one in mine]
        switches = dict.fromkeys(name for one in mine for name in one.neighbours)
        lines += [f"      # Switches by LLDP: {', '.join(switches)}"] if switches else []
        lines += ["      vars:", f"        rail_network_subnets: {json.dumps(list(subnets)) if subnets else CHANGEME}"]
    lines += [f"# nvlink_domain {name}: {uuid}" for name, uuid in fleet.domains.items()]
    more = f"Replace {CHANGEME}, rename leaves and domains as you like."
    return _HEAD.format(more=more) + "\n".join(lines) + "\n"


def site_file(one: NodeClass, members: t.Sequence[Proposal]) -> str:
    """What differs from the class file: rails, and what all hosts of the class have alike."""
    lines = [f"# What the class file does not say, or says differently: 00-class.yml is {one.name} as it should be."]
    common = common_rails(members)
    wanted = [{"rail": number, "pci": pci} for number, pci in enumerate(common)]
    if common and one.variables.get("mlx5_port_rails") != wanted:
        lines += ["mlx5_port_rails:", *rail_lines(common)]
    if common and "rail_network_rails" not in one.variables:
        lines.append('rail_network_rails: "{{ mlx5_port_rails }}"')
    if common and not any(member.leaf for member in members):
        lines.append(f"rail_network_subnets: {CHANGEME}  # in rail order; better in the group of each leaf")
    # These a site may well have otherwise; all else that differs is taken for a fault, and only reported.
    for key, values in (("architecture", {member.host.architecture for member in members}),
                        ("cpu_cores", {member.host.cores for member in members})):
        value, said = values.pop(), getattr(one, key)
        if not values and said and value not in (None, said):
            lines.append(f"node_class_{key}: {scalar(value)}  # the class says {said}")
    return "---\n" + "\n".join(lines) + "\n"


def files(fleet: Fleet, connections: Connections) -> dict[str, str]:
    """Path below the inventory's folder -> text."""
    found = {"hosts.yml": hosts_file(fleet, connections),
             "group_vars/all.yml": '---\naidc_state_dir: "{{ inventory_dir }}/.state"\n'}
    for one in {member.group: member.node_class for member in fleet.proposals}.values():
        if one is not None:
            folder = f"group_vars/{one.name}"
            found[f"{folder}/00-class.yml"] = one.text
            found[f"{folder}/10-site.yml"] = site_file(one, _members(fleet, one.name))
    return found
