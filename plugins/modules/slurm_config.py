#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_config
short_description: Installs Slurm's configuration files on a host and has its daemon take them over
version_added: 0.1.0
description:
  - Takes the texts that M(aidc.gpu_cluster.slurm_render) has made, checks them again, compares them with the files of
    the host, and decides from what differs whether the daemon needs nothing, C(scontrol reconfigure) or a restart.
  - Before anything is replaced the files are compared with each other, Slurm's own reader reads a copy of them (on a
    controller), and all new files lie on the disk beside the old ones. So a syntax error or a full disk changes
    nothing.
  - The old files stay in C(aidc-old/ROLE) of the folder. If the daemon does not start with the new ones, or keeps its
    old configuration, they come back, the daemon is started with them, and the module fails with the daemon's own
    words.
  - After a reconfigure slurmctld is asked what it has, as it keeps the old configuration after an error and only logs
    it.
  - A run that was killed is completed by the next one. A second run changes nothing and restarts nothing.
  - A host without a file of its own (configless) has nothing to install; RV(compute_action) of the controller says
    whether its slurmd must be restarted.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: Everything but the writes is done, so C(changed), C(diff) and RV(commands) equal those of the run.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  files:
    description: Text of each file by its name. Each begins with our header.
    type: dict
    required: true
  absent:
    description: Names of files that must not be there, such as those of
      RV(aidc.gpu_cluster.slurm_render#module:absent).
    type: list
    elements: str
    default: []
  directory:
    description: Folder of the files.
    type: str
    default: /etc/slurm
  role:
    description: What the host is. A host with two roles is called for twice.
    type: str
    choices: [controller, dbd, compute, login]
    required: true
  state:
    description:
      - V(installed) puts the files in place and leaves the daemons alone; the next call with V(active) knows what
        they need. So all hosts can have the files before the first daemon reads them.
      - V(active) also has the daemon take them over, and starts one that does not run.
    type: str
    choices: [installed, active]
    default: active
  services:
    description: Units, without C(.service). By default the role's daemon, none for V(login).
    type: list
    elements: str
  user:
    description: C(SlurmUser), who owns C(slurmdbd.conf).
    type: str
    default: slurm
  take_over:
    description: Replace files that are not ours, too. They are kept as the others are.
    type: bool
    default: false
  start_timeout_seconds:
    description: Longest time in seconds until a daemon runs and answers; less than 1 counts as 1.
    type: int
    default: 60
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 30
seealso:
  - module: aidc.gpu_cluster.slurm_render
  - name: Slurm's upgrade and reconfiguration notes
    description: What needs a restart.
    link: https://slurm.schedmd.com/slurm.conf.html
notes:
  - Needs root, systemd and the daemon's package.
  - C(slurmdbd.conf) includes C(slurmdbd-secret.conf), which must be there first; Slurm waits a minute for a file that
    it shall include.
"""

EXAMPLES = r"""
- name: Files everywhere first
  aidc.gpu_cluster.slurm_config:
    files: "{{ rendered.files }}"
    absent: "{{ rendered.absent }}"
    role: controller
    state: installed
  become: true

- name: Then the daemon
  aidc.gpu_cluster.slurm_config:
    files: "{{ rendered.files }}"
    absent: "{{ rendered.absent }}"
    role: controller
  become: true
"""

RETURN = r"""
before:
  description: The files as they were, and systemd's word for each service.
  returned: success
  type: dict
  contains: &state
    files:
      description: Text, mode and owner of each file by its name.
      type: dict
      sample: {cgroup.conf: {text: "CgroupPlugin=autodetect\n", mode: "0644", owner: root}}
    services:
      description: State of each service.
      type: dict
      sample: {slurmctld: active}
after:
  description: The same as it is now; in check mode, as it would be.
  returned: success
  type: dict
  contains: *state
commands:
  description:
    - What was done, in check mode what would be done, in order; one list per step.
    - A file operation is V(keep) (the old file, under a second name), V(write) or V(remove) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [keep, /etc/slurm/aidc-old/controller/slurm.conf]
    - [write, /run/aidc/slurm-config-controller.pending]
    - [write, /etc/slurm/slurm.conf]
    - [scontrol, reconfigure]
    - [remove, /run/aidc/slurm-config-controller.pending]
steps:
  description: The same steps with their reasons.
  returned: success
  type: list
  elements: dict
  contains:
    command:
      description: As in RV(commands).
      type: list
      elements: str
      sample: [scontrol, reconfigure]
    disruptive:
      description: V(none). Jobs outlive a restart of each of Slurm's daemons.
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: "partition train: reconfigure"
action:
  description: What the daemon of this role needs (O(state=installed)) or got; V(none), V(reconfigure) or V(restart).
  returned: success
  type: str
  sample: reconfigure
compute_action:
  description: On a controller, what the slurmd of all nodes need beside it; V(none) or V(restart).
  returned: success
  type: str
  sample: none
compute_restart_id:
  description:
    - On a controller, which files each slurmd has to be started with. Role C(slurm) starts it again
      where it was last started for another id, also when the run that made the change was killed or left the node out.
    - Empty before the first change that needs it, and for other roles.
  returned: success
  type: str
  sample: 3f1c9a0be7d24a55
why:
  description: Which difference needs what.
  returned: success
  type: list
  elements: str
  sample: ["partition train: reconfigure"]
version:
  description: Release family of Slurm on the host; empty for V(dbd) and V(login), where nothing depends on it.
  returned: success
  type: str
  sample: "24.11"
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: slurmctld.service
    got:
      description: What was found.
      type: str
      sample: "no answer within 60 s: fatal: Invalid NodeName"
    wanted:
      description: What was wanted.
      type: str
      sample: a daemon that runs
    hint:
      description: What to do.
      type: str
      sample: ""
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import config_argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.config_configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=config_argspec.spec(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=config_argspec.timeout(module.params))
    try:
        result = configure(machine, config_argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
