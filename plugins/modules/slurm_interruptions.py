#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_interruptions
short_description: Reports why nodes were out of service in Slurm, how often, how long, and what it cost
version_added: 0.1.0
description:
  - Reads Slurm's accounting (C(sacctmgr show event), C(sacct)) on a host that has these tools, and changes nothing. It
    needs slurmdbd. Any user that accounting lets see all jobs may run it.
  - States and reasons of a node that follow each other without a gap are one interruption. Its cause is the first that
    says something, as what follows happened to a node that was out already.
  - Causes are the sources of our drains (C(aidc:gate), and of the health program its check, C(aidc:health) with
    V(ports) and so on), what slurmctld says itself, Xid numbers, and C(operator) for other texts.
  - Planned is what a source of O(planned_sources) drained, a reboot by Slurm, a start of Slurm, and what happens in a
    reservation for maintenance. Planned time is reported apart.
  - Slurm's accounting counts a drained node from the moment when its last job has ended. A node that drains for hours
    with jobs on it loses nothing yet.
  - The result is stored in the fleet record, as C(slurm_interruptions/HOST.json) in C(aidc_state_dir), if the module is
    called by its full name.
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
    details: The window moves with the time if O(end) is left out.
options:
  days:
    description: How many days before the end the window begins, if O(start) is left out.
    type: float
    default: 30.0
  start:
    description: Begin of the window in UTC, such as V(2026-01-02T03:04:05Z).
    type: str
  end:
    description: End of the window in UTC; by default, and at the latest, now.
    type: str
  planned_sources:
    description: Sources (O(aidc.gpu_cluster.slurm_node#module:source)) whose drains are planned.
    type: list
    elements: str
    default: [handover, upgrade, reboot, maintenance]
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 120
seealso:
  - module: aidc.gpu_cluster.slurm_node
  - module: aidc.gpu_cluster.slurm_health
  - name: sacctmgr
    description: What an event is.
    link: https://slurm.schedmd.com/sacctmgr.html
"""

EXAMPLES = r"""
- name: The last week
  aidc.gpu_cluster.slurm_interruptions:
    days: 7
  register: interruptions

- name: A month, with the site's own maintenance counted as planned
  aidc.gpu_cluster.slurm_interruptions:
    start: "2026-01-01T00:00:00Z"
    end: "2026-02-01T00:00:00Z"
    planned_sources: [handover, upgrade, reboot, maintenance, recabling]
"""

RETURN = r"""
report:
  description: The report. Times are in UTC.
  returned: success
  type: dict
  contains:
    schema_version:
      description: Version of this shape.
      type: int
      sample: 1
    window:
      description: Begin, end and length.
      type: dict
      sample: {start: "2026-01-02T00:00:00Z", end: "2026-01-09T00:00:00Z", hours: 168.0}
    nodes:
      description: Nodes of the cluster, or null if slurmctld did not answer.
      type: int
      sample: 84
    interruptions:
      description: Number of those that nobody planned.
      type: int
      sample: 7
    planned:
      description: Number of the others.
      type: int
      sample: 2
    node_hours:
      description: Node-hours in all, lost, lost as planned, and what share is left.
      type: dict
      sample: {total: 14112.0, lost: 31.5, lost_planned: 12.0, available_percent: 99.692}
    mean_hours_between:
      description: Hours of the window for each interruption of any node, or null without one.
      type: float
      sample: 24.0
    mean_node_hours_between:
      description: Hours in which a node could work for each interruption, or null.
      type: float
      sample: 2009.786
    causes:
      description: By cause, those that were not planned first.
      type: list
      elements: dict
      sample: [{cause: "aidc:health: ports", planned: false, interruptions: 3, node_hours: 9.5, nodes: [gb1-01]}]
    by_node:
      description: By node, the worst first.
      type: list
      elements: dict
      sample: [{node: gb1-01, interruptions: 3, planned: 0, hours: 9.5}]
    jobs:
      description: Jobs that Slurm ended because a node failed, and their node-hours until then.
      type: dict
      sample: {ended_by_nodes: 2, node_hours: 310.0}
    list:
      description: Each interruption; C(end) is null while it lasts.
      type: list
      elements: dict
      sample:
        - {node: gb1-01, start: "2026-01-02T03:04:05Z", end: null, hours: 3.0, cause: Xid 79, planned: false, reason: x}
table:
  description: The same as lines.
  returned: success
  type: list
  elements: str
  sample: ["CAUSE  PLANNED  INTERRUPTIONS  NODE-HOURS  NODES"]
record_file:
  description: Where the controller stored it.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/slurm_interruptions/ctl01.json
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  sample:
    - {object: sacctmgr, got: exit status 1, wanted: lines of accounting, hint: does slurmdbd run}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import report_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.info_io import large_runner


def main() -> None:
    module = AnsibleModule(argument_spec=report_io.spec(), supports_check_mode=True)
    machine = Machine(run=large_runner(), tool_timeout_seconds=max(1.0, float(module.params["tool_timeout_seconds"])))
    try:
        found = report_io.read(machine, module.params)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
