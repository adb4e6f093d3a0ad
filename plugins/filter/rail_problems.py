# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: rail_problems
short_description: What is wrong with the rail variables of a host
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Checks the variables of the role P(aidc.gpu_cluster.mlx5_port#role) without the host - well-formed and unique PCI
    addresses, rail numbers 0 to n-1, MTUs in range, and an RDMA MTU that the netdev MTU can give.
  - It takes any value and never fails; what is wrong with the value is in the result.
positional: mtu_bytes, expected_rdma_mtu_bytes
options:
  _input:
    description: The variable C(mlx5_port_rails).
    type: raw
    required: true
  mtu_bytes:
    description: The variable C(mlx5_port_mtu_bytes).
    type: raw
    required: true
  expected_rdma_mtu_bytes:
    description: The variable C(mlx5_port_expected_rdma_mtu_bytes).
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Refuse rails that cannot work
  ansible.builtin.assert:
    that: mlx5_port_rails | aidc.gpu_cluster.rail_problems(4200, 4096) | length == 0
"""

RETURN = r"""
_value:
  description: One text for each thing that is wrong, beginning with the path of the value; empty if all is well.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.rails import rail_problems


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"rail_problems": rail_problems}
