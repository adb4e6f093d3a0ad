#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry file of the module nccl_batch."""
from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_batch
short_description: Run many nccl-tests on parts of a pool, side by side, and judge each
version_added: 0.1.0
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
description:
  - Starts each of O(runs) with Open MPI 4 or 5 over SSH, from the host on which the module runs (the first of
    O(hosts)), parses its output and judges it. Runs that share no host go at the same time; a run waits for the
    earlier ones on its hosts.
  - A run need not contain the first host.
  - A run that takes longer than its time limit is ended, and its verdict is V(HANG). After each run that did not end
    well the processes of the run on its hosts are looked for and ended, so that the next one does not measure beside
    them.
  - A bad verdict does not make the module fail. A run is not a change.
  - Needs what M(aidc.gpu_cluster.run_access) makes. Use it without C(become). It is what the role
    P(aidc.gpu_cluster.nccl_gate#role) searches with.
options:
  run_id:
    description: Id of the run whose key is used, as given to M(aidc.gpu_cluster.run_access).
    type: str
    required: true
  hosts:
    description: All hosts that O(runs) may name. The first is the one on which the module runs.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the host in O(runs) and in messages.
        type: str
        required: true
      hostname:
        description: What the host calls itself. By default its name.
        type: str
        default: ""
      address:
        description: Name or IPv4 address under which the first host reaches it.
        type: str
        required: true
      port:
        description: Port of its SSH server.
        type: int
        default: 22
      host_keys:
        description: Its public host keys, as M(aidc.gpu_cluster.run_access) returns them where it lets the key in.
        type: list
        elements: str
        required: true
  runs:
    description: What to run.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: Id of the run in this batch, 1 to 32 letters, digits, C(-) and C(_).
        type: str
        required: true
      hosts:
        description: Names of its hosts.
        type: list
        elements: str
        required: true
      program:
        description: Program of nccl-tests, a name on the C(PATH) or an absolute path; the same on all hosts.
        type: str
        default: all_reduce_perf
      environment:
        description: Variables for the ranks, over O(environment).
        type: dict
        default: {}
      min_bytes:
        description: Smallest size, with K, M or G for binary units.
        type: str
        required: true
      max_bytes:
        description: Largest size.
        type: str
        required: true
      min_busbw_gbps:
        description: Bus bandwidth in GB/s (1e9 bytes/s) that the peak is measured against.
        type: float
        required: true
      time_limit_seconds:
        description: After this it is ended.
        type: int
        default: 120
      needs:
        description: Id of an earlier run on the same hosts. If that hangs, this one is not tried and has no verdict.
        type: str
        default: ""
  launcher:
    description: Open MPI's launcher, a name on the C(PATH) or an absolute path.
    type: str
    default: mpirun
  gpus_per_host:
    description: GPUs of each host. Ranks are hosts times this.
    type: int
    required: true
  processes_per_host:
    description: MPI processes of each host; each gets C(-g) with O(gpus_per_host) divided by this.
    type: int
    default: 1
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
    description: Iterations whose data is checked. V(0) checks nothing, and then no verdict is V(PASS).
    type: int
    default: 1
  network:
    description:
      - Network (CIDR) or interface for the launcher's own traffic. By default the network of the first host's address.
    type: str
    default: ""
  environment:
    description: Variables for the ranks. Nothing else of the environment is forwarded.
    type: dict
    default: {}
  pass_fraction:
    description: Part of C(min_busbw_gbps) that is enough.
    type: float
    default: 0.9
  parallel:
    description: How many runs go at the same time at most.
    type: int
    default: 16
  allow_simulated:
    description: Whether a log of the lab's stand-in may pass. Its verdict is then shown as V(PASS (SIMULATED)).
    type: bool
    default: false
  allow_socket:
    description: Whether a run without RDMA may pass.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details: In check mode the module says what it would run, and RV(runs) is empty.
  diff_mode:
    support: none
    details: There is no change to show.
  idempotent:
    support: full
seealso:
  - module: aidc.gpu_cluster.nccl_test
  - module: aidc.gpu_cluster.run_access
"""

EXAMPLES = r"""
- name: Two pairs side by side, then one rail of the first
  aidc.gpu_cluster.nccl_batch:
    run_id: gb200-20260101T000000Z-1a2b
    hosts: "{{ pool_hosts }}"
    gpus_per_host: 4
    environment: {NCCL_ALGO: RING, NCCL_DEBUG: INFO}
    runs:
      - {id: a, hosts: [gb1, gb2], min_bytes: 1G, max_bytes: 4G, min_busbw_gbps: 200}
      - {id: b, hosts: [gb3, gb4], min_bytes: 1G, max_bytes: 4G, min_busbw_gbps: 200}
      - id: a-rail2
        hosts: [gb1, gb2]
        environment: {NCCL_IB_HCA: "=mlx5_2:1"}
        min_bytes: 256M
        max_bytes: 1G
        min_busbw_gbps: 50
        needs: a
"""

RETURN = r"""
changed:
  description: Always V(false).
  returned: always
  type: bool
  sample: false
runs:
  description:
    - For each run, in the order given, C(id), C(hosts), C(verdict) (C(state), C(label), C(reason), C(ratio),
      C(culprit), C(simulated); null for a run that was not tried), C(whole) (whether all of it was measured),
      C(peak_busbw_gbps), C(seconds), C(exit_code),
      C(left) (what could not be ended, in words) and, if it neither passed nor was slow, C(log), of a long one its
      two ends.
  returned: success
  type: list
  elements: dict
  sample: [{id: a, hosts: [gb1, gb2], verdict: {state: SLOW, ratio: 0.5}, peak_busbw_gbps: 100.0}]
commands:
  description: The launchers' argument lists.
  returned: success
  type: list
  elements: list
  sample: [[mpirun, --hostfile, /home/ops/.aidc/runs/r1a/hosts-a, -np, "2", all_reduce_perf, -b, 1G]]
"""

import os
import pwd
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._access.io import Store
from ..module_utils._host.errors import AidcError, Problem
from ..module_utils._host.machine import Machine
from ..module_utils._nccl.batch import Batch, Item
from ..module_utils._nccl.io import Interrupted
from ..module_utils._nccl.launch import Host, Job
from ..module_utils._nccl.run import Criteria

HOST_SPEC = {
    "name": {"type": "str", "required": True},
    "hostname": {"type": "str", "default": ""},
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "default": 22},
    "host_keys": {"type": "list", "elements": "str", "required": True, "no_log": False},
}
RUN_SPEC = {
    "id": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "str", "required": True},
    "program": {"type": "str", "default": "all_reduce_perf"},
    "environment": {"type": "dict", "default": {}},
    "min_bytes": {"type": "str", "required": True},
    "max_bytes": {"type": "str", "required": True},
    "min_busbw_gbps": {"type": "float", "required": True},
    "time_limit_seconds": {"type": "int", "default": 120},
    "needs": {"type": "str", "default": ""},
}
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "run_id": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "dict", "required": True, "options": HOST_SPEC},
    "runs": {"type": "list", "elements": "dict", "required": True, "options": RUN_SPEC},
    "launcher": {"type": "str", "default": "mpirun"},
    "gpus_per_host": {"type": "int", "required": True},
    "processes_per_host": {"type": "int", "default": 1},
    "step_factor": {"type": "int", "default": 2},
    "iterations": {"type": "int", "default": 20},
    "warmup_iterations": {"type": "int", "default": 5},
    "check": {"type": "int", "default": 1},
    "network": {"type": "str", "default": ""},
    "environment": {"type": "dict", "default": {}},
    "pass_fraction": {"type": "float", "default": 0.9, "no_log": False},
    "parallel": {"type": "int", "default": 16},
    "allow_simulated": {"type": "bool", "default": False},
    "allow_socket": {"type": "bool", "default": False},
}
_SAME_NAMES = ("launcher", "gpus_per_host", "processes_per_host", "step_factor", "iterations", "warmup_iterations",
               "check", "network", "run_id")


def _texts(values: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def batch_of(params: t.Mapping[str, t.Any], store: Store, machine: Machine) -> Batch:
    hosts = {host["name"]: Host(**{**host, "host_keys": tuple(host["host_keys"])}) for host in params["hosts"]}
    if not hosts:
        raise AidcError([Problem("hosts", "none", "the host on which the module runs, and others")])
    common: dict[str, t.Any] = {
        "run_dir": str(store.run_dir(params["run_id"])), "user": pwd.getpwuid(os.getuid()).pw_name,
        **{name: params[name] for name in _SAME_NAMES},
    }
    environment = _texts(params["environment"])
    items = []
    for run in params["runs"]:
        unknown = [name for name in run["hosts"] if name not in hosts]
        if unknown or not run["hosts"]:
            raise AidcError([Problem(f"runs: {run['id']}.hosts", ", ".join(unknown) or "none", "names of hosts")])
        job = Job(
            hosts=tuple(hosts[name] for name in run["hosts"]), binary=run["program"], part=run["id"],
            min_bytes=run["min_bytes"], max_bytes=run["max_bytes"],
            environment={**environment, **_texts(run["environment"])}, **common,
        )
        criteria = Criteria(run["min_busbw_gbps"], params["pass_fraction"], params["allow_simulated"],
                            params["allow_socket"])
        items.append(Item(job, criteria, run["time_limit_seconds"], run["needs"]))
    pool = Job(hosts=tuple(hosts.values()), environment=environment, **common)
    return Batch(pool, items, store, machine, params["parallel"])


def result_of(module: AnsibleModule) -> dict[str, t.Any]:
    batch = batch_of(module.params, Store(), Machine())
    if module.check_mode:
        return {"changed": False, "runs": [], "commands": batch.planned()}
    commands, answers = batch.run()
    return {"changed": False, "runs": [answer.as_dict() for answer in answers], "commands": commands}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        module.exit_json(**result_of(module))
    except AidcError as error:
        module.fail_json(**error.as_result())
    except Interrupted as error:
        module.fail_json(msg=f"run {module.params['run_id']}: ended, as this module got {error}")


if __name__ == "__main__":
    main()
