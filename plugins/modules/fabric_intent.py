#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_intent
short_description: Reads the RoCE fabric's intent of a node, keeps it as good, or makes the good one the intent again
version_added: 0.1.0
description:
  - A node has its intent in C(/etc/aidc/intent.json) - what M(aidc.gpu_cluster.rail_network),
    M(aidc.gpu_cluster.mlx5_port), M(aidc.gpu_cluster.roce_qos) and M(aidc.gpu_cluster.roce_gid) were last told and have
    applied. The one with which the node last passed the gate is kept in C(/etc/aidc/intent.good.json).
  - With both the module tells what was changed since the last pass - section, port, option, what it was and is.
  - It moves files only. C(playbooks/rollback.yml) applies the good intent with the modules themselves and then
    uses O(state=restored).
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: Everything but the write is done, so C(changed), C(diff) and RV(commands) equal those of the run.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description:
      - V(read) changes nothing.
      - V(good) keeps the intent as the good one. Without an intent nothing is done.
      - V(restored) makes the good intent the intent. Without a good one the call fails.
    type: str
    choices: [read, good, restored]
    default: read
  run_id:
    description: Name of the run that writes, such as that of the gate.
    type: str
seealso:
  - module: aidc.gpu_cluster.fabric_boot
notes:
  - A file that is cut, or that a newer release wrote, is an error, and nothing is written.
  - O(state=good) and O(state=restored) need root. A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart.
"""

EXAMPLES = r"""
- name: What was changed since the node last passed the gate?
  aidc.gpu_cluster.fabric_intent:
  register: intent

- name: The node has passed the gate
  aidc.gpu_cluster.fabric_intent:
    state: good
    run_id: gb200-20260102T030405Z
  become: true
"""

RETURN = r"""
before:
  description: Sections of both intents as they were; null for a file that is not there.
  returned: success
  type: dict
  contains: &state
    intent:
      description: Options of each module by its name.
      type: dict
      sample: {roce_qos: {dscp: 24, ports: [{pci: "0000:03:00.0"}]}}
    good:
      description: The same of the good intent.
      type: dict
      sample: {roce_qos: {dscp: 26, ports: [{pci: "0000:03:00.0"}]}}
after:
  description: The same as they are now; in check mode, as they would be.
  returned: success
  type: dict
  contains: *state
intent:
  description: As in RV(after).
  returned: success
  type: dict
  sample: {roce_qos: {dscp: 24, ports: [{pci: "0000:03:00.0"}]}}
good:
  description: As in RV(after).
  returned: success
  type: dict
  sample: {roce_qos: {dscp: 26, ports: [{pci: "0000:03:00.0"}]}}
commands:
  description: What was done, in check mode what would be done; V(write) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [write, /etc/aidc/intent.good.json]
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
      sample: [write, /etc/aidc/intent.good.json]
    disruptive:
      description: V(none).
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: the intent has changed since the last pass
intent_time:
  description: When the intent was written, or null.
  returned: success
  type: str
  sample: "2026-01-03T03:04:05Z"
good_time:
  description: When the good intent was written, or null.
  returned: success
  type: str
  sample: "2026-01-02T03:04:05Z"
differences:
  description: What the intent says differently than the good one; empty if one of them is not there.
  returned: success
  type: list
  elements: dict
  contains:
    section:
      description: Name of the module.
      type: str
      sample: roce_qos
    port:
      description: PCI address, or null for an option of all ports.
      type: str
      sample: null
    option:
      description: Name of the option, or null where the section or port itself is new or gone.
      type: str
      sample: dscp
    was:
      description: Its value in the good intent; V(true) or V(false) where the section or port itself is meant.
      type: raw
      sample: 26
    is:
      description: Its value now.
      type: raw
      sample: 24
words:
  description: The same for people, a line each.
  returned: success
  type: list
  elements: str
  sample: ["roce_qos: dscp was 26, is 24"]
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: /etc/aidc/intent.json
    got:
      description: What was found.
      type: str
      sample: an empty file
    wanted:
      description: What was wanted.
      type: str
      sample: the host's intent
    hint:
      description: What to do.
      type: str
      sample: run playbooks/fabric.yml again, after you have removed the file
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.configure import configure, spec


def main() -> None:
    module = AnsibleModule(argument_spec=spec(), supports_check_mode=True)
    try:
        result = configure(Machine(), module.params["state"], module.params["run_id"], module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
