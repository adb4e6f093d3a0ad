# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: slurm_hostlist
short_description: Names of hosts as one host list of Slurm
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Joins names whose numbers follow each other, with their zeros, as C(scontrol show hostlist) does.
  - The order is kept, and only neighbours are joined, so that P(aidc.gpu_cluster.slurm_hostnames#filter) gives the same
    list back. With O(sort) the names are sorted, numbers by value, and each is named once.
positional: sort
options:
  _input:
    description: Names.
    type: list
    elements: str
    required: true
  sort:
    description: Whether the names are sorted first.
    type: bool
    default: false
seealso:
  - plugin: aidc.gpu_cluster.slurm_hostnames
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the trays of a class as gb1-[01-18],gb2-[01-18]
  ansible.builtin.debug:
    msg: "{{ groups['gb200'] | aidc.gpu_cluster.slurm_hostlist }}"
"""

RETURN = r"""
_value:
  description: The host list; empty for no names.
  type: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import hostlist


def slurm_hostlist(names: t.Any, sort: bool = False) -> str:
    if isinstance(names, (str, bytes)) or not isinstance(names, t.Iterable):
        raise AnsibleFilterError(f"slurm_hostlist: got {names!r}, wanted a list of names")
    try:
        return hostlist.compress(names, sort)
    except (hostlist.HostlistError, TypeError) as error:
        raise AnsibleFilterError(f"slurm_hostlist: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"slurm_hostlist": slurm_hostlist}
