#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_boot
short_description: Installs the boot tool, which sets the RoCE fabric of a node again without Ansible
version_added: 0.1.0
description:
  - Rings, channels, pause, QoS and RDMA-CM's modes of mlx5 ports are runtime state. A boot, a reload of the driver or a
    new device ends it. The boot tool sets it again from the host's intent, C(/etc/aidc/intent.json), which
    M(aidc.gpu_cluster.rail_network), M(aidc.gpu_cluster.mlx5_port), M(aidc.gpu_cluster.roce_qos) and
    M(aidc.gpu_cluster.roce_gid) write when they have applied and read back their state.
  - The tool is these modules' own code in one file, C(/usr/libexec/aidc/aidc-fabric.pyz), for Python 3.9 or later. Its
    action plugin packs it on the controller; the same code gives the same bytes.
  - C(aidc-fabric.service) runs it at boot, and C(aidc-fabric@NETDEV.service), which a udev rule has systemd start,
    whenever a netdev of mlx5_core comes. udev waits for neither.
  - It reads first and writes only what differs. Files of network managers, addresses and routes are not its own; what
    lacks of them it tells with their owner's name. A link that is in use is left alone.
  - Everything is checked before the first write, and all is read back. A run that was killed is completed by the next.
  - The result has what the installed tool says differs on the host.
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
  state:
    description: Whether the tool is installed and enabled, or is removed. The intent stays in any case.
    type: str
    choices: [present, absent]
    default: present
  check_drift:
    description: Ask the installed tool what differs from the intent; see RV(drift).
    type: bool
    default: true
  python:
    description: Interpreter that the units start the tool with; Python 3.9 or later.
    type: str
    default: /usr/bin/python3
  digest:
    description: SHA-256 of the tool. The action plugin sets it.
    type: str
  source:
    description: Where the tool's bytes are on the host. The action plugin sets it when the module has asked for them.
    type: path
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1. The boot tool has two minutes.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.fabric_intent
  - module: aidc.gpu_cluster.roce_qos
  - name: systemd.device
    description: How a udev rule has systemd start a unit.
    link: https://www.freedesktop.org/software/systemd/man/latest/systemd.device.html
notes:
  - Needs root and systemd.
  - By hand, C(/usr/libexec/aidc/aidc-fabric.pyz --check) tells what differs, C(apply) sets it. Exit status 0 nothing
    differs, 2 something does, 3 there is no intent or it cannot be read.
  - What the tool did is in the journal, C(journalctl -t aidc-fabric).
"""

EXAMPLES = r"""
- name: The boot tool
  aidc.gpu_cluster.fabric_boot:
  become: true

- name: Away with it
  aidc.gpu_cluster.fabric_boot:
    state: absent
  become: true
"""

RETURN = r"""
before:
  description: The files as they were, and whether the tool ran at boot.
  returned: success
  type: dict
  contains: &state
    files:
      description: Text and mode of each file by its path; of the tool its SHA-256.
      type: dict
      sample: {/usr/libexec/aidc/aidc-fabric.pyz: {text: 9f86d081884c7d65, mode: "0755"}}
    enabled:
      description: Whether the tool runs at boot.
      type: bool
      sample: true
after:
  description: The same as it is now; in check mode, as it would be.
  returned: success
  type: dict
  contains: *state
commands:
  description:
    - What was done, in check mode what would be done, in order; one list per step.
    - A file operation is V(write) or V(remove) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [write, /run/aidc/fabric-boot.pending]
    - [write, /usr/libexec/aidc/aidc-fabric.pyz]
    - [write, /etc/systemd/system/aidc-fabric.service]
    - [systemctl, daemon-reload]
    - [remove, /run/aidc/fabric-boot.pending]
    - [systemctl, enable, aidc-fabric.service]
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
      sample: [systemctl, enable, aidc-fabric.service]
    disruptive:
      description: V(none).
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: it is disabled
enabled:
  description: Whether the tool runs at boot; in check mode as it is before the steps.
  returned: success
  type: bool
  sample: true
drift:
  description: What differs from the intent, by the installed tool; null where it was not asked or cannot tell.
  returned: success
  type: list
  elements: dict
  contains:
    section:
      description: The module whose section it is, or V(ports).
      type: str
      sample: roce_qos
    port:
      description: PCI address or netdev, or null.
      type: str
      sample: "0000:03:00.0"
    what:
      description: What differs.
      type: str
      sample: pfc is []
    command:
      description: The step that puts it right. Empty where that is not the tool's to do.
      type: list
      elements: str
      sample: [dcb, pfc, set, dev, ens1f0np0, prio-pfc, "all:off", "3:on"]
drift_why:
  description: Why the tool cannot tell, or null.
  returned: success
  type: str
  sample: "exit status 3: /etc/aidc/intent.json: got no file, wanted the host's intent (run playbooks/fabric.yml)"
intent_time:
  description: When the intent was written, or null.
  returned: success
  type: str
  sample: "2026-01-02T03:04:05Z"
good_time:
  description: When the intent was written with which the host passed the gate, or null.
  returned: success
  type: str
  sample: null
record_file:
  description: Where the controller stored the result in the fleet record.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/fabric_boot/gb200-1.json
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: aidc-fabric.service
    got:
      description: What was found.
      type: str
      sample: masked
    wanted:
      description: What was wanted.
      type: str
      sample: a unit that can be enabled
    hint:
      description: What to do.
      type: str
      sample: "somebody has switched the boot tool off: systemctl unmask aidc-fabric.service"
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._bootunit import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._bootunit.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.spec(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        result = configure(machine, argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
