#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry file of the module nccl_test."""
from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_test
short_description: Run nccl-tests on a set of hosts, parse and judge the result
version_added: 0.1.0
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
description:
  - With O(state=tested) starts a program of nccl-tests on all hosts with Open MPI 4 or 5 over SSH, from the host on
    which the module runs, parses its output and judges it.
  - With O(state=judged) judges a log that exists.
  - A verdict is V(PASS) only for one whole run of the ranks, hosts and sizes asked for, with data checked and the
    bandwidth at the limit. Exit code 0 alone is no proof.
  - A bad verdict does not make the module fail, unless O(fail_on_verdict). A run is not a change.
  - Needs what M(aidc.gpu_cluster.run_access) makes. Use it without C(become).
options:
  state:
    description: Run and judge, or judge a log.
    type: str
    choices: [tested, judged]
    default: tested
  hosts:
    description: The hosts of the run. The first is the one on which the module runs. Needed by O(state=tested).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the host in messages.
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
  run_id:
    description: Id of the run, as given to M(aidc.gpu_cluster.run_access). Needed by O(state=tested).
    type: str
  log_file:
    description: For O(state=judged), path of the log on the host.
    type: path
  binary:
    description: Program of nccl-tests, a name on the C(PATH) or an absolute path; the same on all hosts.
    type: str
    default: all_reduce_perf
  launcher:
    description: Open MPI's launcher, a name on the C(PATH) or an absolute path.
    type: str
    default: mpirun
  gpus_per_host:
    description: GPUs of each host. Ranks are hosts times this.
    type: int
  processes_per_host:
    description: MPI processes of each host; each gets C(-g) with O(gpus_per_host) divided by this.
    type: int
    default: 1
  min_bytes:
    description: Smallest size, with K, M or G for binary units.
    type: str
    default: 1M
  max_bytes:
    description: Largest size.
    type: str
    default: 1G
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
    description: Iterations whose data is checked. V(0) checks nothing, and then the verdict is never V(PASS).
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
  min_busbw_gbps:
    description: Bus bandwidth in GB/s (1e9 bytes/s) that the peak is measured against.
    type: float
    required: true
  pass_fraction:
    description: Part of O(min_busbw_gbps) that is enough.
    type: float
    default: 0.9
  time_limit_seconds:
    description: A run that takes longer is ended, on all hosts, and its verdict is V(HANG).
    type: int
    default: 600
  allow_simulated:
    description: Whether a log of the lab's stand-in may pass. Its verdict is then shown as V(PASS (SIMULATED)).
    type: bool
    default: false
  allow_socket:
    description: Whether a run without RDMA may pass.
    type: bool
    default: false
  fail_on_verdict:
    description: Fail if the verdict is not V(PASS).
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details: In check mode the module says what it would run, and the verdict is null.
  diff_mode:
    support: none
    details: There is no change to show.
  idempotent:
    support: full
seealso:
  - module: aidc.gpu_cluster.run_access
  - name: nccl-tests
    description: Source and documentation of the tests.
    link: https://github.com/NVIDIA/nccl-tests
"""

EXAMPLES = r"""
- name: All-reduce over two hosts with four GPUs each
  aidc.gpu_cluster.nccl_test:
    hosts:
      - {name: node1, address: 192.0.2.1, host_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA"]}
      - {name: node2, address: 192.0.2.2, host_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB"]}
    run_id: l40s-20260101T000000Z-1a2b
    gpus_per_host: 4
    min_bytes: 8M
    max_bytes: 8G
    min_busbw_gbps: 50
    environment:
      NCCL_IB_HCA: "=mlx5_0:1,mlx5_1:1"
      NCCL_ALGO: RING
      NCCL_DEBUG: INFO

- name: Judge a log
  aidc.gpu_cluster.nccl_test:
    state: judged
    log_file: /var/tmp/all_reduce.log
    min_busbw_gbps: 370
    fail_on_verdict: true
"""

RETURN = r"""
changed:
  description: Always V(false).
  returned: always
  type: bool
  sample: false
verdict:
  description:
    - The verdict with C(state) (V(PASS), V(SLOW), V(WRONG), V(UNVERIFIED), V(INVALID), V(INCOMPLETE), V(CRASH),
      V(HANG), V(LAUNCH)), C(reason), C(label) (the state as it may be shown), C(limit), C(ratio), C(culprit).
    - Null in check mode.
  returned: success
  type: dict
  sample: {state: SLOW, label: SLOW, reason: "peak busbw 25.00 GB/s is 50.0% of 50 GB/s", ratio: 0.5}
result:
  description: What the log says (C(peak_busbw_gbps), C(rows), C(ranks), C(hosts), C(transport), C(errors) and more).
  returned: success
  type: dict
  sample: {peak_busbw_gbps: 25.0, ranks: 8, hosts: [node1, node2], verification: verified}
causes:
  description:
    - Likely causes with C(strength) (V(certain), V(likely), V(hint)), C(cause), C(action),
      C(source), C(places) and C(evidence), the most certain first.
  returned: success
  type: list
  elements: dict
  sample: [{id: socket, strength: certain, cause: "Data went over sockets (NET/Socket), not RDMA (NET/IB)."}]
command:
  description: The launcher's argument list.
  returned: success
  type: list
  elements: str
  sample: [mpirun, --hostfile, /home/ops/.aidc/runs/r1a/hosts, -np, "2", all_reduce_perf, -b, 8M]
commands:
  description: List of the commands that were run.
  returned: success
  type: list
  elements: list
  sample: [[mpirun, --hostfile, /home/ops/.aidc/runs/r1a/hosts, -np, "2", all_reduce_perf, -b, 8M]]
evidence:
  description:
    - Start time, seconds, exit code, whether it was ended by us, processes of this host that were killed or left,
      and, in words, what could not be ended on the other hosts after a bad end.
  returned: success
  type: dict
  sample: {started: "2026-01-01T00:00:00Z", seconds: 12.5, exit_code: 0, timed_out: false, killed: [], left: [],
           left_on_hosts: []}
log_path:
  description: Log file on the host. The newest ten are kept.
  returned: success
  type: str
  sample: /home/ops/.aidc/logs/l40s-20260101T000000Z-1a2b.log
log:
  description: The log, of a long one its two ends.
  returned: success
  type: str
  sample: "# nThread 1 nGpus 4 minBytes 8388608 maxBytes 8589934592"
"""

import os
import pwd
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._access.io import Store
from ..module_utils._gate.judging import explain, judged
from ..module_utils._host.errors import AidcError
from ..module_utils._host.machine import Machine
from ..module_utils._nccl.io import Bounds, Interrupted
from ..module_utils._nccl.launch import Host, Job
from ..module_utils._nccl.model import Expected
from ..module_utils._nccl.run import Criteria, Report, planned, tested

HOST_SPEC = {
    "name": {"type": "str", "required": True},
    "hostname": {"type": "str", "default": ""},
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "default": 22},
    "host_keys": {"type": "list", "elements": "str", "required": True, "no_log": False},
}
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "state": {"type": "str", "choices": ["tested", "judged"], "default": "tested"},
    "hosts": {"type": "list", "elements": "dict", "options": HOST_SPEC},
    "run_id": {"type": "str"},
    "log_file": {"type": "path"},
    "binary": {"type": "str", "default": "all_reduce_perf"},
    "launcher": {"type": "str", "default": "mpirun"},
    "gpus_per_host": {"type": "int"},
    "processes_per_host": {"type": "int", "default": 1},
    "min_bytes": {"type": "str", "default": "1M"},
    "max_bytes": {"type": "str", "default": "1G"},
    "step_factor": {"type": "int", "default": 2},
    "iterations": {"type": "int", "default": 20},
    "warmup_iterations": {"type": "int", "default": 5},
    "check": {"type": "int", "default": 1},
    "network": {"type": "str", "default": ""},
    "environment": {"type": "dict", "default": {}},
    "min_busbw_gbps": {"type": "float", "required": True},
    "pass_fraction": {"type": "float", "default": 0.9, "no_log": False},
    "time_limit_seconds": {"type": "int", "default": 600},
    "allow_simulated": {"type": "bool", "default": False},
    "allow_socket": {"type": "bool", "default": False},
    "fail_on_verdict": {"type": "bool", "default": False},
}
REQUIRED_IF = [("state", "tested", ["hosts", "run_id", "gpus_per_host"]), ("state", "judged", ["log_file"])]
_SAME_NAMES = ("binary", "launcher", "processes_per_host", "min_bytes", "max_bytes", "step_factor", "iterations",
               "warmup_iterations", "check", "network", "run_id", "gpus_per_host")


def job_of(params: t.Mapping[str, t.Any], store: Store) -> Job:
    hosts = tuple(Host(**{**host, "host_keys": tuple(host["host_keys"])}) for host in params["hosts"])
    return Job(
        hosts=hosts, run_dir=str(store.run_dir(params["run_id"])), user=pwd.getpwuid(os.getuid()).pw_name,
        environment={name: str(value) for name, value in params["environment"].items()},
        **{name: params[name] for name in _SAME_NAMES},
    )


def report_of(module: AnsibleModule) -> Report:
    params = module.params
    criteria = Criteria(params["min_busbw_gbps"], params["pass_fraction"], params["allow_simulated"],
                        params["allow_socket"])
    if params["state"] == "judged":
        return judged(params["log_file"], criteria, judged_expected(params))
    store, machine = Store(), Machine()
    job = job_of(params, store)
    if module.check_mode:
        return planned(job, criteria, machine)
    return explain(tested(job, criteria, Bounds(params["time_limit_seconds"]), store, machine))


def judged_expected(params: t.Mapping[str, t.Any]) -> Expected:
    """Of a log only what was really given is expected."""
    hosts, gpus = params["hosts"] or [], params["gpus_per_host"]
    return Expected(
        ranks=len(hosts) * gpus if hosts and gpus else None, nodes=len(hosts) or None,
        hosts=tuple(host["hostname"] or host["name"] for host in hosts) or None,
        allow_simulated=params["allow_simulated"], allow_socket=params["allow_socket"],
    )


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, required_if=REQUIRED_IF, supports_check_mode=True)
    try:
        report = report_of(module)
    except AidcError as error:
        module.fail_json(**error.as_result())
    except Interrupted as error:
        module.fail_json(msg=f"run {module.params['run_id']}: ended, as this module got {error}")
    values = report.as_dict()
    for process in report.evidence.get("left", []):
        module.warn(f"process {process['pid']} cannot be ended: {process['command']}")
    if module.params["fail_on_verdict"] and report.verdict is not None and report.verdict.state != "PASS":
        module.fail_json(msg=f"{report.verdict.label}: {report.verdict.reason}", **values)
    module.exit_json(**values)


if __name__ == "__main__":
    main()
