# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: slurm_hostnames
short_description: Names of a host list of Slurm
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Expands C(gb1-[01-03,07],login), as C(scontrol show hostnames) does. Zeros are kept, and a name may have several
    brackets.
options:
  _input:
    description: Host list.
    type: str
    required: true
seealso:
  - plugin: aidc.gpu_cluster.slurm_hostlist
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the hosts of a drained rack
  ansible.builtin.debug:
    msg: "{{ 'gb1-[01-18]' | aidc.gpu_cluster.slurm_hostnames }}"
"""

RETURN = r"""
_value:
  description: The names in the order of the list.
  type: list
  elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import hostlist


def slurm_hostnames(text: t.Any) -> list[str]:
    if not isinstance(text, str):
        raise AnsibleFilterError(f"slurm_hostnames: got {text!r}, wanted a host list such as 'n[01-04]'")
    try:
        return hostlist.expand(text)
    except hostlist.HostlistError as error:
        raise AnsibleFilterError(f"slurm_hostnames: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"slurm_hostnames": slurm_hostnames}
