#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This is the documentation of the action plugin of the same name, which does the work on the controller.
from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_audit
short_description: Whether the fabric of a fleet is consistent, from the switch's expectation to NCCL
version_added: 0.1.0
description:
  - Compares for each rail of each host what the inventory says (node class, roles, switch side) with what the fleet
    record has, and hosts of a pool with each other. No host is contacted.
  - A pool is node class x NVLink domain policy x fabric (variable C(fabric_name)). Hosts of different pools may differ
    in all.
  - What the record does not have is not compared. Records come from M(aidc.gpu_cluster.mlx5_info) with its option
    C(fabric), M(aidc.gpu_cluster.host_info), M(aidc.gpu_cluster.path_probe) and the modules that set the fabric; the
    role P(aidc.gpu_cluster.fabric_audit#role) takes them.
  - Equal findings of many hosts are one. A minority is named; where a pool is split, nobody is.
  - The report is written on the controller as C(audit/audit.json) in C(aidc_state_dir), and what was expected as
    C(audit/expect.json) beside it. Writing them is not a change. In check mode nothing is written.
  - It does not fail for findings; RV(failing) and RV(message) are for the task that does.
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
    description: Hosts to audit in the order of the inventory. Not those of a limit, as hosts are compared.
    type: list
    elements: str
    required: true
  what:
    description: V(audit), or V(targets) for only RV(targets).
    type: str
    choices: [audit, targets]
    default: audit
  fail_on:
    description: Least severity that counts in RV(failing).
    type: str
    choices: [error, warning, note, never]
    default: error
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - module: aidc.gpu_cluster.path_probe
"""

EXAMPLES = r"""
- name: Audit what the last runs have recorded
  aidc.gpu_cluster.fabric_audit:
    hosts: "{{ groups['gb200'] }}"
  run_once: true
"""

RETURN = r"""
hosts:
  description: Number of hosts.
  returned: success, what=audit
  type: int
  sample: 84
rails:
  description: Number of their rails.
  returned: success, what=audit
  type: int
  sample: 208
pools:
  description: For each pool its size, and how many findings it has.
  returned: success, what=audit
  type: list
  elements: dict
  sample: [{pool: gb200/nvlink18, hosts: 36, rails: 144, error: 1, warning: 0, note: 0}]
counts:
  description: Number of findings of each severity.
  returned: success, what=audit
  type: dict
  sample: {error: 1, warning: 0, note: 0}
findings:
  description: The findings, the gravest first. Rules with their sources are in C(docs/audit.md).
  returned: success, what=audit
  type: list
  elements: dict
  contains:
    id:
      description: Rule.
      type: str
      sample: pfc-priority
    severity:
      description: V(error), V(warning) or V(note).
      type: str
      sample: error
    pool:
      description: Pool.
      type: str
      sample: gb200/nvlink18
    hosts:
      description: Hosts in the order of the inventory; none where a pool is split.
      type: list
      elements: str
      sample: [gb1-02]
    rail:
      description: Rail, or null for several or none in particular.
      type: int
      sample: 0
    where:
      description: Hosts in short, and the rail.
      type: str
      sample: gb1-02 rail 0
    evidence:
      description: What was seen, place by place, as far as they are few.
      type: list
      elements: str
      sample: ["gb1-02 rail 0: PFC on priorities 4 (ens1f0np0)"]
    got:
      description: What was found.
      type: str
      sample: PFC on priorities 4
    wanted:
      description: What was wanted.
      type: str
      sample: "3"
    fix:
      description: What to do.
      type: str
      sample: apply the role roce_qos to this host (playbooks/fabric.yml); the write toggles the link
    source:
      description: On what the rule rests.
      type: str
      sample: mlx5 4.1, 4.3
table:
  description: The same as lines.
  returned: success, what=audit
  type: list
  elements: str
  sample: ["POOL  HOSTS  RAILS  ERRORS  WARNINGS  NOTES"]
failing:
  description: Number of findings of O(fail_on) or graver.
  returned: success, what=audit
  type: int
  sample: 1
message:
  description: The first of them in words.
  returned: success, what=audit
  type: str
  sample: "pfc-priority: gb1-02 rail 0: got PFC on priorities 4, wanted 3"
report_file:
  description: Where the report is.
  returned: success, what=audit
  type: str
  sample: /srv/inventory/.state/audit/audit.json
targets:
  description: By host the paths to be measured, as M(aidc.gpu_cluster.path_probe) takes them.
  returned: success, what=targets
  type: dict
  sample: {gb1-01: [{rail: 0, interface: ens1f0np0, address: 198.51.100.3, size_bytes: 4200, peer: gb1-02}]}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._audit.argspec import AUDIT


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=AUDIT, supports_check_mode=True)
    module.fail_json(msg="this runs on the controller only: call it by its full name, aidc.gpu_cluster.fabric_audit")


if __name__ == "__main__":
    main()
