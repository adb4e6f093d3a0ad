#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: imex_plan
short_description: The NVLink domains of an inventory, and what may be done to each as a whole
version_added: 0.1.0
description:
  - Runs on the controller and changes nothing. A domain is all hosts of the inventory with the same value of the
    variable C(nvlink_domain), in the order of the inventory, whatever a limit or a batch leaves of the play.
  - The address of a host is its variable C(imex_domain_address), or C(ansible_host) where that is an IP address.
  - With the answers of M(aidc.gpu_cluster.imex_domain) of the hosts of a batch it says for each domain whether the list
    may be changed. That is done with all of its hosts or with none, and never while one of them is in use.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    details: Runs on the controller.
options:
  domains:
    description: What an earlier call has returned, in place of another look at the inventory.
    type: dict
  batch:
    description: Hosts that can be changed now, those of C(ansible_play_batch).
    type: list
    elements: str
    default: []
  reads:
    description: By host, the result of M(aidc.gpu_cluster.imex_domain) in check mode. Hosts without one are missing.
    type: dict
  users:
    description: By host, its result in check mode with C(state=stopped), where a restart is wanted.
    type: dict
  stops:
    description: By host, the same without check mode, after the stop.
    type: dict
  restart:
    description: Restart the domains also where no list has changed.
    type: bool
    default: false
seealso:
  - module: aidc.gpu_cluster.imex_domain
notes:
  - Call it with C(run_once), as it looks at all hosts.
"""

EXAMPLES = r"""
- name: Domains of the inventory
  aidc.gpu_cluster.imex_plan:
  run_once: true
  register: plan

- name: May they be changed?
  aidc.gpu_cluster.imex_plan:
    domains: "{{ plan.domains }}"
    batch: "{{ ansible_play_batch }}"
    reads: "{{ dict(ansible_play_batch | zip(ansible_play_batch | map('extract', hostvars, 'here'))) }}"
  run_once: true
  register: plan
"""

RETURN = r"""
domains:
  description: By name.
  returned: success
  type: dict
  contains:
    hosts:
      description: Hosts of the domain.
      type: list
      elements: str
      sample: [gb1-01, gb1-02]
    nodes:
      description: Their addresses in the same order.
      type: list
      elements: str
      sample: [192.0.2.11, 192.0.2.12]
    problems:
      description: What is wrong in the inventory.
      type: list
      elements: str
      sample: []
    action:
      description:
        - With O(reads). V(none) - the lists are as wanted; V(join) - written and started where no daemon runs, as the
          others have it; V(restart) - stop all, write, start all; V(deferred) - nothing is changed; V(called_off) - not
          all have stopped, so those that have are started as they were.
      type: str
      sample: restart
    missing:
      description: Hosts of the domain that would be needed.
      type: list
      elements: str
      sample: []
    deferred:
      description: Who is in the way, with C(holder) and C(why).
      type: list
      elements: dict
      sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._imex.argspec import PLAN


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=PLAN, supports_check_mode=True)
    module.fail_json(msg="this runs on the controller only: call it by its full name, aidc.gpu_cluster.imex_plan")


if __name__ == "__main__":
    main()
