#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_health
short_description: Installs the health program that drains a Slurm node which is not healthy
version_added: 0.1.0
description:
  - Installs C(/usr/libexec/aidc/aidc-health.pyz), one file for the node's own Python, and its options,
    C(/etc/aidc/health.json). It needs no Ansible and no network but C(scontrol). The same collection gives the same
    bytes.
  - slurmd starts it as C(HealthCheckProgram) and as C(Prolog) by its path alone; the program sees by slurmd's
    environment as what. By hand, C(aidc-health.pyz check) tells and changes nothing. Setting these two keys in
    slurm.conf is not this module's work. To resume a node, C(HealthCheckNodeState) must be C(ANY) or name C(IDLE).
  - It checks RDMA ports, addresses, MTU, QoS and GIDs against the host's intent (C(/etc/aidc/intent.json)), with the
    code of the boot tool (M(aidc.gpu_cluster.fabric_boot)), and GPUs, slurmd's limit of locked memory, and disks.
    What cannot be checked, as without an intent or while a role of this collection changes it, counts for nothing.
  - A check counts as failed after O(fail_after) runs in a row and as good again after O(pass_after). The counts are in
    C(/run/aidc/health.json) and begin anew at a boot. Then the node is drained with a reason C(aidc:health) and what
    failed. A reason of somebody else is left alone, and so is a node that is drained by another source of ours.
  - The checks run in a process of their own. One that hangs, also in the kernel, is a failed check after
    O(time_limit_seconds), and slurmd is not held up.
  - As a prolog only checks of files are made, twice with a second between if one fails. A job does not start then, and
    the node is drained at once. Without a verdict a job is not held back.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: RV(health) is then what the program that is installed already says.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description: Whether the program and its options are there.
    type: str
    choices: [present, absent]
    default: present
  checks:
    description:
      - What is checked. V(gpus) only with O(gpus).
      - V(ports) is the RDMA state of each port of the intent; V(addresses), V(mtu), V(qos) and V(gid) are what differs
        from the intent, V(mtu) with all that M(aidc.gpu_cluster.mlx5_port) was told. V(ports) and the checks before it
        read files, the rest asks tools.
    type: list
    elements: str
    choices: [memlock, disk, gpus, ports, addresses, mtu, qos, gid]
    default: [memlock, disk, gpus, ports, addresses, mtu, qos, gid]
  gpus:
    description: Number of GPUs that the node must have. Left out, they are not counted.
    type: int
  gpus_from:
    description:
      - V(driver) counts C(/proc/driver/nvidia/gpus). V(device_files) counts C(/dev/nvidia0) and so on, which may stay
        when a GPU is lost; it is for hosts without that driver, such as those of the lab.
    type: str
    choices: [driver, device_files]
    default: driver
  memlock_bytes:
    description: Least limit of locked memory that slurmd, and so each job, must have. Left out, it must be unlimited.
    type: int
  disks:
    description: File systems that must be writable and have room.
    type: list
    elements: dict
    default: [{path: /}]
    suboptions:
      path:
        description: A folder on the file system.
        type: path
        required: true
      min_free_percent:
        description: How much of its bytes and of its inodes must be free.
        type: int
        default: 5
  fail_after:
    description: Runs in a row after which a check counts as failed.
    type: int
    default: 2
  pass_after:
    description: Runs in a row after which a failed check counts as good.
    type: int
    default: 3
  drain:
    description: Whether the node is drained. With V(false) the program only tells slurmd's log.
    type: bool
    default: true
  resume:
    description:
      - Whether a node that the program has drained is resumed when all checks have passed O(pass_after) times. Not if
        slurmctld has added something to the reason that is not settled, such as C(Kill task failed).
    type: bool
    default: false
  time_limit_seconds:
    description: Longest time for all checks of one run, at most 40. slurmd ends the program after 60 seconds.
    type: int
    default: 20
  ask:
    description: Ask the installed program what it says of the host now.
    type: bool
    default: true
  digest:
    description: SHA-256 of the program. The action plugin sets it.
    type: str
  source:
    description: Where the program's bytes are on the host. The action plugin sets it where they are needed.
    type: path
seealso:
  - module: aidc.gpu_cluster.fabric_boot
  - module: aidc.gpu_cluster.slurm_node
  - name: slurm.conf
    description: HealthCheckProgram, HealthCheckInterval, HealthCheckNodeState, Prolog.
    link: https://slurm.schedmd.com/slurm.conf.html
"""

EXAMPLES = r"""
- name: Four GPUs, all of the intent, a disk for logs; resume what it has drained itself
  aidc.gpu_cluster.slurm_health:
    gpus: 4
    disks:
      - path: /
      - path: /var/log
        min_free_percent: 10
    resume: true
  become: true

- name: Tell, but do not drain yet
  aidc.gpu_cluster.slurm_health:
    drain: false
  become: true
"""

RETURN = r"""
before:
  description: Files as they were, of the program its SHA-256.
  returned: success
  type: dict
  sample: {}
after:
  description: Files as they are now; in check mode, as they would be.
  returned: success
  type: dict
  sample: {/usr/libexec/aidc/aidc-health.pyz: {text: 9c1185a5c5, mode: "0755"}}
commands:
  description: What was done, in check mode what would be done.
  returned: always
  type: list
  elements: list
  sample: [[write, /etc/aidc/health.json], [write, /usr/libexec/aidc/aidc-health.pyz]]
steps:
  description: The same with a reason for each.
  returned: success
  type: list
  elements: dict
  sample:
    - {command: [write, /etc/aidc/health.json], disruptive: none, why: there is none}
health:
  description: What the installed program says of the host; null where it was not asked or cannot tell.
  returned: success
  type: dict
  contains:
    results:
      description: Each check; C(ok) is null where nothing could be said.
      type: list
      elements: dict
      sample: [{check: gpus, ok: false, text: "got 3 GPUs, wanted 4"}]
    failed:
      description: What fails at this moment, by check.
      type: dict
      sample: {gpus: "got 3 GPUs, wanted 4"}
health_why:
  description: Why it cannot tell, or null.
  returned: success
  type: str
  sample: null
record_file:
  description: Where the controller stored RV(health) in the fleet record.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/slurm_health/gb200-1.json
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  sample:
    - {object: /etc/aidc/health.json, got: "fail_after: 0", wanted: 1 to 100, hint: ""}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._healthunit import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._healthunit.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.spec(), supports_check_mode=True)
    try:
        result = configure(Machine(), argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
