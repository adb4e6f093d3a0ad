# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: rail_table
short_description: Hosts x rails as lines of text
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Makes a table with one line per host and rail - netdev MTU, RDMA MTU, and the RoCE v2 GID of the port's IPv4 address
    with its index. The index is a fact of the moment when it was read, never a setting.
  - The hosts and their order come from the caller, usually from inventory groups. A host without a record has a line.
  - A record is of the last run that met the host. Its age is in the table, and hosts with an old record or none
    are named below it, as a host that is down must not look like one that is well.
positional: hosts, max_age_hours
options:
  _input:
    description:
      - Records of M(aidc.gpu_cluster.mlx5_info) by host, as the lookup P(aidc.gpu_cluster.fleet_record#lookup) returns.
    type: dict
    required: true
  hosts:
    description: Names of the hosts in the order of the lines.
    type: list
    elements: str
    required: true
  max_age_hours:
    description: Age in hours from which a record is old, and named below the table.
    type: float
    default: 24
seealso:
  - plugin: aidc.gpu_cluster.fleet_record
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Show the rails of the fleet
  ansible.builtin.debug:
    msg: "{{ lookup('aidc.gpu_cluster.fleet_record', 'mlx5_info') | aidc.gpu_cluster.rail_table(groups['gb200']) }}"
"""

RETURN = r"""
_value:
  description: Lines of the table, the heading first.
  type: list
  elements: str
"""

import typing as t
from datetime import datetime, timezone

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import rails


def rail_table(records: t.Any, hosts: t.Any, max_age_hours: t.Any = rails.MAX_AGE_HOURS) -> list[str]:
    try:
        return rails.rail_table(records, hosts, datetime.now(timezone.utc), float(max_age_hours))
    except rails.ShapeError as error:
        raise AnsibleFilterError(f"rail_table: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"rail_table": rail_table}
