# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: slurm_nccl_profile
short_description: The environment that NCCL needs on a node, for jobs of Slurm
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - From a result of M(aidc.gpu_cluster.mlx5_info) and the facts of the host - the rails by their exact names, the
    interface of the management network, the traffic class, and how the GID is found. A reason stands above each line.
  - The rails are read as the role C(nccl_gate) reads them, so that a job uses what the gate has measured.
positional: pcis, facts
options:
  _input:
    description: Result of M(aidc.gpu_cluster.mlx5_info); not looked at without O(pcis).
    type: dict
    required: true
  pcis:
    description: PCI addresses of the rails in rail order; empty for a node without.
    type: list
    elements: str
    required: true
  facts:
    description: The variable C(ansible_facts) with the subset C(network).
    type: dict
    required: true
  address:
    description: Address of the host in the management network.
    type: str
    default: ""
  dscp:
    description: DSCP of RoCE, from 0 to 63; without it there is no traffic class.
    type: int
  environment:
    description: More variables; they win.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the profile
  ansible.builtin.debug:
    msg: "{{ (mlx5 | aidc.gpu_cluster.slurm_nccl_profile(['0000:03:00.0'], ansible_facts, dscp=26)).text }}"
"""

RETURN = r"""
_value:
  description: The profile, and why a rail is not in it.
  type: dict
  contains:
    text:
      description: Text of the file, lines NAME=VALUE with a comment before each.
      type: str
    environment:
      description: The same as a dictionary.
      type: dict
    problems:
      description: One text for each rail that cannot be used.
      type: list
      elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.pool import ShapeError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import nccl_profile


def slurm_nccl_profile(
    info: t.Any, pcis: t.Any, facts: t.Any, address: str = "", dscp: t.Any = None, environment: t.Any = None,
) -> dict[str, t.Any]:
    if not isinstance(facts, t.Mapping):
        raise AnsibleFilterError(f"slurm_nccl_profile: facts: got {type(facts).__name__}, wanted a mapping")
    if not isinstance({} if environment is None else environment, t.Mapping):
        raise AnsibleFilterError(f"slurm_nccl_profile: environment: got {type(environment).__name__}, wanted a mapping")
    try:
        number = None if dscp is None else int(dscp)
        return nccl_profile.profile(info, pcis, facts, str(address), number, environment or {})
    except (ShapeError, ValueError) as error:
        raise AnsibleFilterError(f"slurm_nccl_profile: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"slurm_nccl_profile": slurm_nccl_profile}
