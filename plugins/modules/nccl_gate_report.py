#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This is the documentation of the action plugin of the same name, which does the work on the controller.
from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_gate_report
short_description: Verdict, report and table of each pool of the role nccl_gate
version_added: 0.1.0
description:
  - Takes what the tasks of the role P(aidc.gpu_cluster.nccl_gate#role) registered on each host, makes one record for
    each pool and writes it on the controller as C(POOL.json), with the log of the run beside it as C(POOL.log).
  - It does not fail for a bad verdict, so that all pools are reported; the role fails afterwards with C(msg).
  - Writing a report is not a change. In check mode nothing is written.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: There is no change to show.
  idempotent:
    support: full
options:
  hosts:
    description: Hosts whose pools are reported.
    type: list
    elements: str
    required: true
  report_dir:
    description: Folder for the reports on the controller.
    type: path
    required: true
  mode:
    description: V(apply) reports the run of this play, V(verify) looks whether the last reports are valid.
    type: str
    choices: [apply, verify]
    default: apply
  max_age_days:
    description: For O(mode=verify), how old a report may be.
    type: int
    default: 7
seealso:
  - module: aidc.gpu_cluster.nccl_test
"""

EXAMPLES = r"""
- name: Report
  aidc.gpu_cluster.nccl_gate_report:
    hosts: "{{ ansible_play_hosts_all }}"
    report_dir: "{{ inventory_dir }}/.state/gate"
  run_once: true
"""

RETURN = r"""
pools:
  description: For each pool C(pool), C(state), C(label), C(stage), C(reason), C(passed) and C(simulated).
  returned: success
  type: list
  elements: dict
  sample: [{pool: l40s, state: PASS, label: PASS, stage: run, passed: true, simulated: false}]
table:
  description: Lines of a table with one line for each pool.
  returned: success
  type: list
  elements: str
  sample: ["POOL  HOSTS  VERDICT  BUSBW GB/s  WANTED  WHY"]
failed_pools:
  description: Pools that were tested, or should have been, and did not pass.
  returned: success
  type: list
  elements: str
  sample: []
message:
  description: Pool, state and reason of each failed pool.
  returned: success
  type: str
  sample: ""
report_dir:
  description: Where the reports are.
  returned: success
  type: str
  sample: /srv/inventory/.state/gate
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._gate.argspec import REPORT


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=REPORT, supports_check_mode=True)
    name = "aidc.gpu_cluster.nccl_gate_report"
    module.fail_json(msg=f"this runs on the controller only: call it by its full name, {name}")


if __name__ == "__main__":
    main()
