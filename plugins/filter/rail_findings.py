# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: rail_findings
short_description: Where a host differs from its rails
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Compares a result of M(aidc.gpu_cluster.mlx5_info) with the rails of the host - netdev MTU, saved MTU, RDMA MTU, and
    a port that is ACTIVE. Each text names host, rail, got and wanted.
positional: host, rails, mtu_bytes, expected_rdma_mtu_bytes
options:
  _input:
    description: Result of M(aidc.gpu_cluster.mlx5_info).
    type: dict
    required: true
  host:
    description: Name of the host, for the texts.
    type: str
    required: true
  rails:
    description: The variable C(mlx5_port_rails).
    type: list
    elements: dict
    required: true
  mtu_bytes:
    description: Netdev MTU in bytes of a rail that states none of its own.
    type: int
    required: true
  expected_rdma_mtu_bytes:
    description: RDMA MTU in bytes that every rail must have.
    type: int
    required: true
  check_saved:
    description: Whether the MTU must be saved for the next boot too.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Verify the rails
  ansible.builtin.assert:
    that: mlx5 | aidc.gpu_cluster.rail_findings(inventory_hostname, mlx5_port_rails, 4200, 4096) | length == 0
"""

RETURN = r"""
_value:
  description: One text for each difference; empty if the host is as wanted.
  type: list
  elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import rails as fleet_rails


def rail_findings(
    data: t.Any, host: str, rails: t.Any, mtu_bytes: t.Any, expected_rdma_mtu_bytes: t.Any, check_saved: bool = True,
) -> list[str]:
    try:
        return fleet_rails.rail_findings(data, host, rails, mtu_bytes, expected_rdma_mtu_bytes, check_saved)
    except fleet_rails.ShapeError as error:
        raise AnsibleFilterError(f"rail_findings: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"rail_findings": rail_findings}
