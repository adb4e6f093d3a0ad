# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gate_rails
short_description: The rails of a host as the gate needs them
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Takes the RDMA device, network interface, address and MTU of each rail from a result of
    M(aidc.gpu_cluster.mlx5_info).
  - A rail that cannot be used is a text in RV(_value.problems).
positional: pcis
options:
  _input:
    description: Result of M(aidc.gpu_cluster.mlx5_info).
    type: dict
    required: true
  pcis:
    description: PCI addresses of the rails in rail order.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show the rails
  ansible.builtin.debug:
    msg: "{{ mlx5 | aidc.gpu_cluster.gate_rails(['0000:03:00.0']) }}"
"""

RETURN = r"""
_value:
  description: The rails, and why some cannot be used.
  type: dict
  contains:
    rails:
      description: For each rail its number, pci, hca, netdev, address and mtu_bytes.
      type: list
      elements: dict
    problems:
      description: One text for each rail that cannot be used.
      type: list
      elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import pool


def gate_rails(facts: t.Any, pcis: t.Any) -> dict[str, list[t.Any]]:
    try:
        return pool.rails_of(facts, pcis)
    except pool.ShapeError as error:
        raise AnsibleFilterError(f"gate_rails: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gate_rails": gate_rails}
