# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: rail_plan
short_description: Addresses of all rails of a fleet
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Computes the address of each rail of each host from the hosts' variables, for IPv4 and IPv6. They are those of the
    role P(aidc.gpu_cluster.rail_network#role) - C(rail_network_rails), C(rail_network_subnets),
    C(rail_network_node_index), C(rail_network_leaf_end).
  - It looks at the whole inventory, so that an address that a host outside of the play has is not given again. Hosts
    without C(rail_network_rails) have no part in it.
  - Refused are a rail number, a PCI address or a subnet twice on a host, subnets that overlap, an address twice in
    the fleet, a network or broadcast address, a number outside of the subnet, and a gateway outside of the subnet
    or equal to the address of a host.
  - Needs the Python package netaddr on the controller. Call it once for a play, as it reads every host's variables.
positional: hosts
options:
  _input:
    description: The variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: Names of the hosts, usually C(groups['all']).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Plan the addresses once
  ansible.builtin.set_fact:
    fleet: "{{ hostvars | aidc.gpu_cluster.rail_plan(groups['all']) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(hosts) - for each host its rails as the option O(aidc.gpu_cluster.rail_network#module:rails) takes them.
    - C(problems) - what is wrong, one text each.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import addresses

_VARIABLES = (addresses.VARIABLE, addresses.INDEX, addresses.SUBNETS, addresses.LEAF_END)


def rail_plan(hostvars: t.Any, hosts: t.Any) -> dict[str, t.Any]:
    if not isinstance(hostvars, t.Mapping):
        raise AnsibleFilterError(f"rail_plan: got {type(hostvars).__name__}, wanted hostvars")
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) and host in hostvars for host in hosts):
        raise AnsibleFilterError(f"rail_plan: hosts: got {hosts!r}, wanted names of hosts in the inventory")
    fleet = {str(host): {name: hostvars[host].get(name) for name in _VARIABLES}
             for host in hosts if addresses.VARIABLE in hostvars[host]}
    options, problems = addresses.plan(fleet)
    return {"hosts": options, "problems": [problem.text() for problem in problems]}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"rail_plan": rail_plan}
