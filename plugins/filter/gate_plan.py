# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gate_plan
short_description: What a host of a pool does next in the role nccl_gate
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Works on what the role knows of the pool's hosts, a mapping of host name to the fact C(__nccl_gate_member).
  - For other roles and playbooks it is of little use.
positional: what, names, host
options:
  _input:
    description: What is known of the hosts, by name. Hosts may be missing.
    type: dict
    required: true
  what:
    description:
      - V(peers) are the hosts that O(host) asks whether its packets arrive.
      - V(problems) are the reasons why the pool cannot be tested.
      - V(targets) is the option C(targets) of M(aidc.gpu_cluster.path_probe) for O(host).
      - V(ready) says whether all hosts let the key in and all paths carry their size.
      - V(hosts) is the option C(hosts) of M(aidc.gpu_cluster.nccl_test).
    type: str
    choices: [peers, problems, targets, ready, hosts]
    required: true
  names:
    description: Names of the pool's hosts in inventory order.
    type: list
    elements: str
    required: true
  host:
    description: The host.
    type: str
    default: ""
  access:
    description: Results of M(aidc.gpu_cluster.run_access) by host.
    type: dict
    default: {}
  paths:
    description: Results of M(aidc.gpu_cluster.path_probe) by host.
    type: dict
    default: {}
  size_bytes:
    description: Packet size for the paths; V(0) is the larger MTU of both ends.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Why can the pool not be tested?
  ansible.builtin.debug:
    msg: "{{ members | aidc.gpu_cluster.gate_plan('problems', groups['l40s']) }}"
"""

RETURN = r"""
_value:
  description: A list, or for V(ready) a boolean.
  type: raw
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import pool


def gate_plan(
    members: t.Any, what: str, names: t.Any, host: str = "", access: t.Any = None, paths: t.Any = None,
    size_bytes: t.Any = 0,
) -> t.Any:
    access, paths = access or {}, paths or {}
    answers: dict[str, t.Callable[[], t.Any]] = {
        "peers": lambda: pool.peers_of(names, host),
        "problems": lambda: pool.problems(names, members),
        "targets": lambda: pool.path_targets(members, host, int(size_bytes)),
        "ready": lambda: pool.ready(names, access, paths),
        "hosts": lambda: pool.test_hosts(names, members, access),
    }
    try:
        return answers[what]()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AnsibleFilterError(f"gate_plan {what!r} for {host or names}: {type(error).__name__}: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gate_plan": gate_plan}
