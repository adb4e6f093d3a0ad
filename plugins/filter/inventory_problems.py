# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: inventory_problems
short_description: What is wrong in the variables of an inventory
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Checks the variables of all hosts without the hosts - each in one class, rails and MTUs, the variables of the class,
    types and choices as the roles specify them, NVLink domains, and the addresses of the whole fleet as
    P(aidc.gpu_cluster.rail_plan#filter) computes them.
  - It looks at the variables that the roles know and at no others. What is wrong with many hosts in the same words is
    one line.
  - Needs the Python package netaddr on the controller. Call it once for a play, as it reads every host's variables.
positional: groups, specs, folder
options:
  _input:
    description: The variable C(hostvars).
    type: dict
    required: true
  groups:
    description: The variable C(groups).
    type: dict
    required: true
  specs:
    description:
      - The roles' options, as the lookup P(aidc.gpu_cluster.shipped_data#lookup) returns them for V(argument_specs).
    type: dict
    required: true
  folder:
    description: Folder of the inventory, for the texts.
    type: str
    default: ""
seealso:
  - plugin: aidc.gpu_cluster.rail_plan
    plugin_type: filter
  - plugin: aidc.gpu_cluster.shipped_data
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Refuse an unsound inventory
  ansible.builtin.assert:
    that: problems | length == 0
    fail_msg: "{{ problems }}"
  run_once: true
  vars:
    specs: "{{ lookup('aidc.gpu_cluster.shipped_data', 'argument_specs') }}"
    problems: "{{ hostvars | aidc.gpu_cluster.inventory_problems(groups, specs, inventory_dir) }}"
"""

RETURN = r"""
_value:
  description: One text for each thing that is wrong; empty if all is well.
  type: list
  elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import classes, variables


def inventory_problems(hostvars: t.Any, groups: t.Any, specs: t.Any, folder: str = "") -> list[str]:
    for name, value in (("hostvars", hostvars), ("groups", groups), ("specs", specs)):
        if not isinstance(value, t.Mapping):
            raise AnsibleFilterError(f"inventory_problems: {name}: got {type(value).__name__}, wanted a mapping")
    wanted = variables.names(specs)
    hosts = {str(host): _values(hostvars[host], wanted) for host in groups.get("all", ())}
    members = {name: [str(host) for host in groups.get(name, ())] for name in classes.CLASSES}
    return variables.problems(variables.Inventory(hosts, members, specs, str(folder)))


def _values(variables_of: t.Mapping[str, t.Any], wanted: t.Sequence[str]) -> dict[str, t.Any]:
    own = [name for name in variables_of if name.startswith(classes.PREFIX)]
    return {name: variables_of[name] for name in dict.fromkeys([*wanted, *own]) if name in variables_of}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"inventory_problems": inventory_problems}
