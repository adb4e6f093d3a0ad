#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry file of the module slurm_reservation."""
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_reservation
short_description: Hold nodes of Slurm for a run of ours, and give them back
version_added: 0.1.0
description:
  - Makes a reservation on the nodes, so that no other job starts there. slurmctld refuses it while jobs run on one of
    them, and the error names the jobs. No job is ended.
  - Its name is C(aidc.PURPOSE.RUN_ID). Reservations with another beginning are never touched.
  - One of another run for the same purpose is taken for what a killed controller has left, and is removed first. So
    two runs for one purpose at the same time must be kept out by the caller.
  - It ends by itself after O(minutes), also when nobody comes to remove it.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: Whether jobs are in the way is known by slurmctld only when it makes the reservation.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  purpose:
    description:
      - What the nodes are held for, a part of the name; for example the pool of a gate.
      - Letters, digits, dashes and underscores, at most 64.
    type: str
    required: true
  run_id:
    description:
      - Run that holds them, a part of the name, written like O(purpose). Needed for O(state=present).
      - For O(state=absent), empty means the reservations of all runs for this purpose.
    type: str
    default: ""
  state:
    description: Hold the nodes, or give them back.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description:
      - Names of nodes, or host lists such as C(gb200-r01-t[01-18]), which C(scontrol) expands. Needed for
        O(state=present).
    type: list
    elements: str
    default: []
  users:
    description: Users whose jobs may run there, with C(srun --reservation).
    type: list
    elements: str
    default: [root]
  minutes:
    description: After so many minutes, 1 to 1440, it ends by itself.
    type: int
    default: 60
  tool_timeout_seconds:
    description: Longest time in seconds that one call of C(scontrol) may take; less than 1 counts as 1.
    type: int
    default: 30
seealso:
  - module: aidc.gpu_cluster.slurm_node
  - name: scontrol
    description: Reservations and their flags.
    link: https://slurm.schedmd.com/scontrol.html
notes:
  - Run it once for all nodes, on the controller or a login node, as root or as an operator of Slurm.
  - A node that is drained or down can be held, too.
"""

EXAMPLES = r"""
- name: Hold the pool's nodes for the gate, for an hour at most
  aidc.gpu_cluster.slurm_reservation:
    purpose: gate-gb200
    run_id: 20260102T0304
    nodes: ["gb200-r01-t[01-18]"]
    users: [root, ops]
    minutes: 60
  become: true
  run_once: true
  delegate_to: "{{ groups['slurm_controller'][0] }}"

- name: Give them back
  aidc.gpu_cluster.slurm_reservation:
    purpose: gate-gb200
    run_id: 20260102T0304
    state: absent
  become: true
  run_once: true
  delegate_to: "{{ groups['slurm_controller'][0] }}"
"""

RETURN = r"""
before:
  description: Reservations of ours, of all purposes, as they were.
  returned: success
  type: list
  elements: dict
  contains: &reservation
    name:
      description: Its name.
      type: str
      sample: aidc.gate-gb200.20260102T0304
    nodes:
      description: Nodes that it holds, sorted.
      type: list
      elements: str
      sample: [gb200-r01-t01, gb200-r01-t02]
    users:
      description: Users who may run jobs there, sorted.
      type: list
      elements: str
      sample: [ops, root]
    start:
      description: When it began, in local time of the controller; empty in check mode for one that would be made.
      type: str
      sample: "2026-01-02T03:04:05"
    end:
      description: When it ends by itself; empty as above.
      type: str
      sample: "2026-01-02T04:04:05"
    state:
      description: Slurm's word for it; empty as above.
      type: str
      sample: ACTIVE
after:
  description: The same as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *reservation
name:
  description: Name of the reservation, for C(srun --reservation); empty if no run was named.
  returned: success
  type: str
  sample: aidc.gate-gb200.20260102T0304
commands:
  description: Commands that were run, in check mode those that would be.
  returned: always
  type: list
  elements: list
  sample: [[scontrol, delete, "ReservationName=aidc.gate-gb200.20260102T0101"]]
steps:
  description: The same with a reason for each.
  returned: success
  type: list
  elements: dict
  contains:
    command:
      description: As in RV(commands).
      type: list
      elements: str
      sample: [scontrol, delete, "ReservationName=aidc.gate-gb200.20260102T0101"]
    disruptive:
      description: Always V(none), as no job is ended.
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: left by another run
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: The option, the reservation or the command.
      type: str
      sample: aidc.gate-gb200.20260102T0304
    got:
      description: What was found.
      type: str
      sample: job 4242 of alice on gb200-r01-t03
    wanted:
      description: What was wanted.
      type: str
      sample: nodes without jobs
    hint:
      description: What to do.
      type: str
      sample: wait for the jobs, or leave their nodes out
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import hold_argspec, node_argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.hold_configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=hold_argspec.spec(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=node_argspec.timeout(module.params))
    try:
        result = configure(machine, hold_argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
