# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: fabric_batches
short_description: In which order a change goes over the hosts
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Gives each host its batch - V(canary) is one host of each class, V(tenth) a share of each class, V(rest) all others.
positional: canaries
options:
  _input:
    description: Names of the hosts by class, in order.
    type: dict
    required: true
  canaries:
    description: Hosts that go first in their class, in place of its first host.
    type: list
    elements: str
    default: []
  per_class:
    description: How many hosts of a class are canaries if none is named; V(0) is none.
    type: int
    default: 1
  percent:
    description: Share of a class in the second batch, in percent, rounded down to whole hosts.
    type: int
    default: 10
"""

EXAMPLES = r"""
- name: Make a group of each batch
  ansible.builtin.group_by:
    key: "fabric_{{ {'gb200': groups['gb200']} | aidc.gpu_cluster.fabric_batches | extract(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: The batch of each host.
  type: dict
  sample: {gb1: canary, gb2: rest}
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import batches


def _names(where: str, value: t.Any) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise AnsibleFilterError(f"fabric_batches: {where}: got {value!r}, wanted a list of host names")
    return [str(name) for name in value]


def fabric_batches(classes: t.Any, canaries: t.Any = (), per_class: t.Any = 1, percent: t.Any = 10) -> dict[str, str]:
    if not isinstance(classes, t.Mapping):
        raise AnsibleFilterError(f"fabric_batches: got {type(classes).__name__}, wanted a mapping of class to hosts")
    try:
        numbers = int(per_class), int(percent)
    except (TypeError, ValueError):
        numbers = -1, -1
    if numbers[0] < 0 or not 0 <= numbers[1] <= 100:
        raise AnsibleFilterError(f"fabric_batches: got per_class {per_class!r} and percent {percent!r}, wanted whole "
                                 "numbers from 0, and at most 100 percent")
    hosts = {str(name): _names(str(name), members) for name, members in classes.items()}
    return batches.batches(hosts, _names("canaries", canaries), *numbers)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"fabric_batches": fabric_batches}
