#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This is the documentation of the action plugin of the same name, which does the work on the controller.
from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_gate
short_description: Search for the node, rail or path that makes a pool slow
version_added: 0.1.0
description:
  - Asks the planner of the gate what to run, has M(aidc.gpu_cluster.nccl_batch) run it on the pool's head, tells the
    planner, and goes on until the culprit is proven or it is clear that none can be. A node is convicted only if it is
    slow with two different partners that are good with others.
  - Runs on the pool's head, on which M(aidc.gpu_cluster.run_access) has made the key of O(run_id), after all hosts have
    let it in. Without C(become).
  - After each round the search is stored as C(POOL.search.json) in O(report_dir). If the controller is killed, the next
    call with the same hosts, limits and options goes on where it was.
  - Prints one line for each round.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: In check mode nothing is searched.
  diff_mode:
    support: none
    details: There is no change to show.
  idempotent:
    support: full
options:
  pool:
    description: Name of the pool.
    type: str
    required: true
  search:
    description:
      - V(on_failure) searches if the whole-pool run O(first) was slow, crashed or had wrong data. V(always) searches
        also if it hung or passed. All other ends say that the pool was not tested, and then there is no search.
      - After a hang a host is named by launches that exceed their time, and in the lab sound ones did so, too; read its
        result with care.
    type: str
    choices: [on_failure, always, never]
    default: on_failure
  first:
    description: Result of M(aidc.gpu_cluster.nccl_test) for the whole pool.
    type: dict
    required: true
  run_id:
    description: Id of the run whose key is used.
    type: str
    required: true
  hosts:
    description: Option C(hosts) of M(aidc.gpu_cluster.nccl_batch), all hosts of the pool, the head first.
    type: list
    elements: dict
    required: true
  leaves:
    description: For each host the group of hosts that share its access switches. Hosts may be left out.
    type: dict
    default: {}
  rails:
    description: C(rail) and C(hca) (RDMA device and port) of each rail, the same on all hosts.
    type: list
    elements: dict
    required: true
  gpus_per_host:
    description: GPUs of each host.
    type: int
    required: true
  processes_per_host:
    description: MPI processes of each host.
    type: int
    default: 1
  program:
    description: C(all_reduce_perf), a name on the C(PATH) or an absolute path. C(alltoall_perf) lies beside it.
    type: str
    default: all_reduce_perf
  launcher:
    description: Open MPI's launcher.
    type: str
    default: mpirun
  environment:
    description: Variables for the ranks.
    type: dict
    default: {}
  network:
    description: Network (CIDR) or interface for the launcher's own traffic.
    type: str
    default: ""
  min_busbw_gbps:
    description:
      - Bus bandwidth in GB/s that a ring over all rails is measured against, over all hosts or over two. One rail is
        held to its share of it.
    type: float
    required: true
  node_busbw_gbps:
    description: The same for one host by itself. V(0) leaves that stage out.
    type: float
    default: 0
  pass_fraction:
    description: Part of the limit that is enough.
    type: float
    default: 0.9
  kinds:
    description: Whole-pool runs, V(ring) and of V(alltoall) and V(rails) what else is looked at.
    type: list
    elements: str
    default: [ring, rails]
  rules:
    description: Numbers of the planner's rules that this site wants otherwise, such as C(looks), C(flaky_repeats).
    type: dict
    default: {}
  min_bytes:
    description: Smallest size.
    type: str
    default: 1G
  max_bytes:
    description: Largest size. A rail alone gets its share of the bytes.
    type: str
    default: 4G
  step_factor:
    description: Factor between sizes.
    type: int
    default: 2
  iterations:
    description: Measured iterations per size.
    type: int
    default: 20
  warmup_iterations:
    description: Iterations per size before measuring.
    type: int
    default: 5
  check:
    description: Iterations whose data is checked.
    type: int
    default: 1
  run_seconds:
    description: Time limit of one launch; after it the launch is ended on its hosts and counts as a hang.
    type: int
    default: 120
  time_limit_seconds:
    description: Time limit of the search. It ends after the batch that is running.
    type: int
    default: 3600
  parallel:
    description: How many launches go at the same time at most.
    type: int
    default: 16
  allow_simulated:
    description: Whether logs of the lab's stand-in count.
    type: bool
    default: false
  allow_socket:
    description: Whether runs without RDMA count.
    type: bool
    default: false
  report_dir:
    description: Folder for the search on the controller.
    type: path
    required: true
  max_age_seconds:
    description: How old a search that was cut short may be to be gone on with.
    type: int
    default: 7200
seealso:
  - module: aidc.gpu_cluster.nccl_batch
  - module: aidc.gpu_cluster.nccl_gate_report
"""

EXAMPLES = r"""
- name: Who makes the pool slow?
  aidc.gpu_cluster.nccl_gate:
    pool: gb200
    first: "{{ whole_pool }}"
    run_id: gb200-20260101T000000Z-1a2b
    hosts: "{{ pool_hosts }}"
    leaves: {gb1: leaf1, gb2: leaf1}
    rails: [{rail: 0, hca: "mlx5_0:1"}, {rail: 1, hca: "mlx5_1:1"}]
    gpus_per_host: 4
    min_busbw_gbps: 100
    report_dir: "{{ inventory_dir }}/.state/gate"
"""

RETURN = r"""
searched:
  description: Whether there was a search.
  returned: success
  type: bool
  sample: true
resumed:
  description: Whether it went on with one that was cut short.
  returned: success
  type: bool
  sample: false
culprits:
  description: One line for each node, rail or path that is convicted.
  returned: success
  type: list
  elements: str
  sample: ["gb2 rail 2 (mlx5_2): 0.48 of its peers in 6 runs"]
conclusion:
  description:
    - C(verdict), C(reason), C(convicted) with the evidence, C(suspects) (not proven), C(bad_nodes), C(not_tested),
      C(notes), C(history) and more. Null without a search.
  returned: success
  type: dict
  sample: {verdict: FAIL, bad_nodes: [gb2], suspects: [], done: true}
case:
  description: The search as it is stored.
  returned: if there was a search
  type: dict
  sample: {format: 1, simulated: false, done: true}
notes:
  description: Why the search ended before its end, and what could not be cleaned up.
  returned: success
  type: list
  elements: str
  sample: []
launches:
  description: How many launches there were.
  returned: success
  type: int
  sample: 84
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._gate.argspec import SEARCH


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=SEARCH, supports_check_mode=True)
    name = "aidc.gpu_cluster.nccl_gate"
    module.fail_json(msg=f"this runs on the controller only: call it by its full name, {name}")


if __name__ == "__main__":
    main()
