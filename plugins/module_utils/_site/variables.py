# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is wrong in a whole inventory, told without a host: one pass over the variables of all hosts. Pure."""
from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._fleet.rails import rail_problems
from .._rail import addresses
from . import classes

Values = t.Mapping[str, t.Any]
Specs = t.Mapping[str, t.Mapping[str, t.Any]]
MTU, RAIL_MTU = "mlx5_port_mtu_bytes", "rail_network_mtu_bytes"
_PLAN = (addresses.VARIABLE, addresses.INDEX, addresses.SUBNETS, addresses.LEAF_END)
_OTHERS = ("mlx5_port_rails", MTU, "mlx5_port_expected_rdma_mtu_bytes", "nvlink_domain", *_PLAN, RAIL_MTU,
           "rail_network_mode")
# Names that are shown of many hosts with one and the same problem.
_SHOWN = 3


@dataclass(frozen=True)
class Inventory:
    """``hosts`` has the variables of each host, ``members`` the hosts of each class in the inventory's order."""

    hosts: t.Mapping[str, Values]
    members: t.Mapping[str, t.Sequence[str]]
    specs: Specs = field(default_factory=dict)
    # Folder of the inventory, for messages.
    folder: str = ""

    def classes_of(self, host: str) -> list[str]:
        return [name for name, hosts in self.members.items() if host in hosts]


def names(specs: Specs) -> list[str]:
    """The variables that are looked at. Others, such as those of a vault, are not touched."""
    options = (name for spec in specs.values() for name in spec)
    return list(dict.fromkeys([*classes.VARIABLES, *_OTHERS, *options]))


def off(mode: t.Any) -> bool:
    """An unquoted `off` in YAML is the boolean false."""
    return mode is False or mode == "off"


def plain(value: t.Any) -> t.Any:
    """Without the types and tags of the engine, which a validator must not see."""
    return json.loads(json.dumps(value, default=str))


class _Types:
    """Types and choices as the roles' own specifications have them. Hosts of a class have mostly the same values."""

    def __init__(self, specs: Specs) -> None:
        self.specs = specs
        self.known: dict[str, list[str]] = {}

    def problems(self, values: Values) -> list[str]:
        found = []
        for role, spec in self.specs.items():
            given = plain({name: values[name] for name in spec if name in values and values[name] is not None})
            key = f"{role} {json.dumps(given, sort_keys=True)}"
            if key not in self.known:
                # Only what is given: a role fails for what is required and missing, where it runs.
                known = {name: option for name, option in spec.items() if name in given}
                result = ArgumentSpecValidator(known).validate(given)
                self.known[key] = [text.replace("\n", " ") for text in result.error_messages]
            found += self.known[key]
        return found


def _mtu_problems(values: Values) -> list[str]:
    one, other = values.get(MTU), values.get(RAIL_MTU)
    if one is None or other is None or one == other:
        return []
    return [f"{RAIL_MTU}: got {other}, wanted {one}, as {MTU} says; give one of them, the other follows"]


def _host_problems(values: Values, node_class: str, types: _Types) -> list[str]:
    found = rail_problems(values.get("mlx5_port_rails", []), values.get(MTU, 4200),
                          values.get("mlx5_port_expected_rdma_mtu_bytes", 4096))
    return [*found, *classes.class_problems(values, node_class), *_mtu_problems(values), *types.problems(values)]


def _who(hosts: t.Sequence[str]) -> str:
    if len(hosts) <= _SHOWN:
        return ", ".join(hosts)
    return f"{', '.join(hosts[:_SHOWN - 1])} ... {hosts[-1]} ({len(hosts)} hosts)"


def _where(inventory: Inventory, node_class: str, hosts: t.Sequence[str]) -> str:
    host = hosts[0] if len(hosts) == 1 else "HOST"
    return f"edit {inventory.folder}/group_vars/{node_class}/ or {inventory.folder}/host_vars/{host}.yml"


def _plan_problems(hosts: t.Mapping[str, Values]) -> list[str]:
    """Addresses of the whole fleet, but for hosts whose addresses are not ours to give."""
    fleet = {host: {name: values.get(name) for name in _PLAN}
             for host, values in hosts.items()
             if values.get(addresses.VARIABLE) is not None and not off(values.get("rail_network_mode"))}
    return [problem.text() for problem in addresses.plan(fleet)[1]]


def problems(inventory: Inventory) -> list[str]:
    """One line each. What is wrong with several hosts in the same words is one line."""
    lines, types = [], _Types(inventory.specs)
    same: dict[tuple[str, str], list[str]] = {}
    for host in dict.fromkeys(host for hosts in inventory.members.values() for host in hosts):
        found = inventory.classes_of(host)
        if len(found) != 1:
            both = " and ".join(sorted(found))
            lines.append(f"{host}: classes: got {both}, wanted one, edit {inventory.folder}/hosts.yml")
        for text in _host_problems(inventory.hosts[host], found[0], types):
            same.setdefault((found[0], text), []).append(host)
    lines += [f"{_who(hosts)}: variables: {text}; {_where(inventory, node_class, hosts)}"
              for (node_class, text), hosts in same.items()]
    lines += classes.domain_problems(inventory.hosts)
    return [*lines, *(f"rail plan: {text}" for text in _plan_problems(inventory.hosts))]
