# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: fabric_neighbours
short_description: With whom the hosts of a batch try their rails
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Returns for each host of a batch the option C(targets) of M(aidc.gpu_cluster.path_probe), one neighbour a rail.
  - A rail without a netdev, an IPv4 address behind its RoCE v2 GID, or not ACTIVE in its record has no part in it.
positional: when, classes, hosts
options:
  _input:
    description:
      - Records of M(aidc.gpu_cluster.mlx5_info) by host, as the lookup P(aidc.gpu_cluster.fleet_record#lookup) returns.
    type: dict
    required: true
  when:
    description:
      - V(before) a change, neighbours outside of the batch are asked what they carry.
      - V(after) it, full packets must pass to a host that is configured, and to another one what passed before.
    type: str
    choices: [before, after]
    required: true
  classes:
    description: Names of the hosts by class, in order. Neighbours are of one class.
    type: dict
    required: true
  hosts:
    description: The hosts of the batch.
    type: list
    elements: str
    required: true
  done:
    description: Hosts that earlier batches of this run have configured.
    type: list
    elements: str
    default: []
  answers:
    description: The return value C(paths) of M(aidc.gpu_cluster.path_probe) before the change, by host.
    type: dict
    default: {}
  max_age_hours:
    description: Hosts with an older record are nobody's neighbours.
    type: float
    default: 24
"""

EXAMPLES = r"""
- name: Whom to ask
  ansible.builtin.set_fact:
    targets: "{{ lookup('aidc.gpu_cluster.fleet_record', 'mlx5_info')
      | aidc.gpu_cluster.fabric_neighbours('after', {'gb200': groups['gb200']}, ansible_play_hosts) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Targets by host.
  type: dict
  sample:
    gb1: [{rail: 0, interface: ens1f0np0, source: 198.51.100.1, peer: gb2, peer_interface: ens1f0np0,
           address: 198.51.100.2, size_bytes: 4200}]
"""

import typing as t
from datetime import datetime, timezone

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import neighbours, rails, record


def _young(records: t.Mapping[str, t.Any], max_age_hours: float) -> dict[str, t.Any]:
    now = datetime.now(timezone.utc)
    ages = {host: record.age_seconds(one, now) for host, one in records.items() if isinstance(one, t.Mapping)}
    return {host: records[host] for host, age in ages.items() if age is not None and age <= max_age_hours * 3600}


def fabric_neighbours(
    records: t.Any, when: str, classes: t.Any, hosts: t.Any, done: t.Any = (), answers: t.Any = None,
    max_age_hours: t.Any = rails.MAX_AGE_HOURS,
) -> dict[str, list[dict[str, t.Any]]]:
    for name, value in (("records", records), ("classes", classes), ("answers", answers or {})):
        if not isinstance(value, t.Mapping):
            raise AnsibleFilterError(f"fabric_neighbours: {name}: got {type(value).__name__}, wanted a mapping")
    if when not in ("before", "after"):
        raise AnsibleFilterError(f"fabric_neighbours: got {when!r}, wanted before or after")
    known, found = _young(records, float(max_age_hours)), {}
    for members in classes.values():
        mine = [host for host in members if host in hosts]
        if when == "before":
            found.update(neighbours.before(known, members, mine))
        else:
            certain = {*done, *mine}
            found.update({host: neighbours.after(known, members, host, certain - {host},
                                                 neighbours.answered((answers or {}).get(host))) for host in mine})
    return found


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"fabric_neighbours": fabric_neighbours}
