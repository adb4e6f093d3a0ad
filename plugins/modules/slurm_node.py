#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_node
short_description: Drains Slurm nodes and resumes them, with a token that says who may
version_added: 0.1.0
description:
  - Drains, resumes or undrains all listed nodes in one call, from any host with C(scontrol) and a user that is an
    operator of Slurm. It does not run on the nodes themselves.
  - A drain of this module has a reason C(aidc:SOURCE:RUN_ID) with a text behind it. That is its token. A node whose
    reason is somebody else's, or that of another O(source) or O(run_id), is not drained anew, as its reason would be
    lost, and it is not resumed.
  - slurmctld adds to a reason what happens later, behind a colon between blanks. A drain leaves that alone. A resume
    takes what is settled with the resume (a reboot, C(Not responding), a registration that is valid again) and refuses
    the rest, such as C(Kill task failed).
  - Slurm replaces one reason itself, C(Not responding), when a node is drained. So does this module. From Slurm 24.11
    on, slurmctld replaces also a reason of ours when a node registers with less than it is configured with; that node
    is then no longer ours to resume, see O(force_reason).
  - Everything is checked for all nodes before the first command, and an error then says that nothing was changed. All
    is read back. Between reading and draining somebody else may drain the same node; that cannot be kept out, as Slurm
    has no compare and set, but it is found.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is waited for in check mode.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  nodes:
    description: Names of nodes, or host lists such as C(gb200-r01-t[01-18]), which C(scontrol) expands.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(drained) drains and waits until the node is IDLE+DRAIN, without COMPLETING, without a reboot under way. Only
        then its hardware may be touched. C(sinfo) says "drained" also of a node that is DOWN; this module does not.
      - V(draining) drains and does not wait; jobs may still run.
      - V(resumed) is Slurm's C(resume). It takes DRAIN, DOWN and FAIL away and waits for the node's slurmd to answer.
      - V(undrained) is Slurm's C(undrain). It takes DRAIN only, and a node that is DOWN stays so.
    type: str
    required: true
    choices: [drained, draining, resumed, undrained]
  source:
    description: Who drains, a part of the token. Nodes are resumed only for the source that drained them.
    type: str
    default: manual
  run_id:
    description:
      - Run that drains, a part of the token. Given for a resume, only nodes of that run are resumed; left out, nodes of
        any run of the O(source).
      - Letters, digits, dots, dashes and underscores.
    type: str
  reason:
    description: Text of the reason. Needed for O(state=drained) and O(state=draining).
    type: str
  when_held:
    description:
      - What to do with a node that is to be drained and has a reason of somebody else.
      - V(fail) ends the call before anything is changed. V(keep) leaves drain and reason as they are, waits for it all
        the same, and names it in RV(held). A node that is not drained but has somebody's reason is then not drained.
    type: str
    choices: [fail, keep]
    default: fail
  force_reason:
    description:
      - Resume or undrain a node that is not ours, if its whole reason is exactly this text.
      - It takes one reason, not a pattern, so that what somebody writes after you looked is not lost. INVALID_REG and a
        reboot under way are refused all the same.
    type: str
  wait_seconds:
    description:
      - For O(state=drained), the longest time that running jobs are waited for. No job is ended.
      - For a resume, the longest time until slurmd answers, at most 60 seconds. C(idle*) for some seconds is normal.
    type: int
    default: 600
  tool_timeout_seconds:
    description: Longest time in seconds that one call of C(scontrol) may take; less than 1 counts as 1.
    type: int
    default: 30
seealso:
  - module: aidc.gpu_cluster.slurm_info
  - name: scontrol
    description: What Slurm's own states of a node mean.
    link: https://slurm.schedmd.com/scontrol.html
notes:
  - C(scontrol --json) is used where it is there (Slurm 23.02 and later), else its text.
  - Run it once for all nodes, on the controller or a login node, not once per node.
"""

EXAMPLES = r"""
- name: Drain what the gate has convicted, and wait for its jobs for an hour
  aidc.gpu_cluster.slurm_node:
    nodes: [gb200-r01-t03, gb200-r01-t07]
    state: drained
    source: gate
    run_id: 20260102T0304
    reason: rail 2 slow
    wait_seconds: 3600
  become: true
  run_once: true
  delegate_to: "{{ groups['slurm_controller'][0] }}"

- name: Give back what this run has drained, and nothing else
  aidc.gpu_cluster.slurm_node:
    nodes: ["gb200-r01-t[01-18]"]
    state: resumed
    source: gate
    run_id: 20260102T0304
  become: true

- name: Resume a node that Slurm has drained, after its GPUs were put back
  aidc.gpu_cluster.slurm_node:
    nodes: [l40s-r02-n01]
    state: resumed
    force_reason: gres/gpu count reported lower than configured (2 < 4)
  become: true
"""

RETURN = r"""
before:
  description: The nodes as they were.
  returned: success
  type: list
  elements: dict
  contains: &state
    name:
      description: Name of the node.
      type: str
      sample: gb200-r01-t03
    drain:
      description: Whether it is to get no new jobs.
      type: bool
      sample: true
    down:
      description: Whether Slurm takes it for down.
      type: bool
      sample: false
    reason:
      description: The whole reason; empty if there is none.
      type: str
      sample: "aidc:gate:20260102T0304: rail 2 slow"
    owner:
      description: Source of a reason of ours, V(other) for anybody else's, null without one.
      type: str
      sample: gate
after:
  description: The nodes as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *state
commands:
  description: Commands that were run, in check mode those that would be.
  returned: always
  type: list
  elements: list
  sample: [[scontrol, update, "nodename=gb200-r01-t03", state=drain, "reason=aidc:gate:20260102T0304: rail 2 slow"]]
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
      sample: [scontrol, update, "nodename=gb200-r01-t03", state=resume]
    disruptive:
      description: Always V(none), as no job is ended.
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: it is drained
    nodes:
      description: Nodes of the step.
      type: list
      elements: str
      sample: [gb200-r01-t03]
held:
  description: Nodes that were left as they are because their reason is somebody else's, see O(when_held).
  returned: success
  type: list
  elements: str
  sample: []
nodes:
  description: Each node in detail, as M(aidc.gpu_cluster.slurm_info) returns it; in check mode as it would be.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: gb200-r01-t03, state: IDLE+DRAIN, drained: true, usable: false, reboot: none, invalid: [], run_id: r1}
problems:
  description: What stood in the way. A node with INVALID_REG has an entry for each thing that it lacks.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: The node, with INVALID_REG also the field.
      type: str
      sample: l40s-r02-n01 gres/gpu
    got:
      description: What was found.
      type: str
      sample: "2"
    wanted:
      description: What was wanted.
      type: str
      sample: "4"
    hint:
      description: What to do.
      type: str
      sample: repair the node, or correct slurm.conf and gres.conf, then scontrol reconfigure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import node_argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.node_configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=node_argspec.node(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=node_argspec.timeout(module.params))
    try:
        result = configure(machine, node_argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
