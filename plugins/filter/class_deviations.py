# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: class_deviations
short_description: What hosts have other than their node class
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Compares the effective variables of hosts with the data of their class. A deviation is no error, as an inventory may
    override any value; it is something that should be seen.
  - A value that the class derives from others, a template, is not compared; what it is derived from is.
positional: groups, classes
options:
  _input:
    description: The variable C(hostvars), or any mapping of host name to variables.
    type: dict
    required: true
  groups:
    description: The variable C(groups), of which the groups of the classes are looked at.
    type: dict
    required: true
  classes:
    description: Data of each class, as the lookup P(aidc.gpu_cluster.shipped_data#lookup) returns it for V(classes).
    type: dict
    required: true
seealso:
  - plugin: aidc.gpu_cluster.shipped_data
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Deviations from the class
  ansible.builtin.debug:
    msg: "{{ hostvars | aidc.gpu_cluster.class_deviations(groups, classes) }}"
  run_once: true
  vars:
    classes: "{{ lookup('aidc.gpu_cluster.shipped_data', 'classes') }}"
"""

RETURN = r"""
_value:
  description: One line for each class, key and value, with the hosts; empty where all hosts are as their class.
  type: list
  elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site.classes import NAME, deviations


def class_deviations(hostvars: t.Any, groups: t.Any, classes: t.Any) -> list[str]:
    for name, value in (("hostvars", hostvars), ("groups", groups), ("classes", classes)):
        if not isinstance(value, t.Mapping):
            raise AnsibleFilterError(f"class_deviations: {name}: got {type(value).__name__}, wanted a mapping")
    members, hosts = {}, {}
    for name, data in classes.items():
        if not isinstance(data, t.Mapping):
            kind = type(data).__name__
            raise AnsibleFilterError(f"class_deviations: classes[{name!r}]: got {kind}, wanted a mapping")
        members[str(name)] = [str(host) for host in groups.get(name, ())]
        for host in members[str(name)]:
            if host not in hostvars:
                raise AnsibleFilterError(f"class_deviations: groups[{name!r}]: got {host!r}, which has no hostvars")
            values = hostvars[host]
            hosts[host] = {key: values[key] for key in {**data, NAME: ""} if key in values}
    return deviations(hosts, members, classes)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"class_deviations": class_deviations}
