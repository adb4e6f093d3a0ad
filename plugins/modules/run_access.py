#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry file of the module run_access."""
from __future__ import annotations

DOCUMENTATION = r"""
module: run_access
short_description: SSH access between the hosts of one test run
version_added: 0.1.0
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
description:
  - A run that C(mpirun) starts over SSH needs a key from its first host (the head) to the others.
    This module makes a key for one run, lets it in on each host, and removes everything afterwards.
  - It also sweeps. What earlier runs left on the host (processes, lines in C(authorized_keys), folders with keys)
    is removed, unless such a run is still alive.
  - Nothing it does counts as a change. What it makes lives for one run and is removed by the same play, and a
    second run of the play finds the hosts as the first one found them.
  - Use it without C(become). The run, its files and its processes belong to the login user.
options:
  state:
    description:
      - V(made), on the head, makes a key pair in a folder of the run (mode 0700, C(~/.aidc/runs/RUN_ID)) and returns
        the public key. The private key never leaves the host and is in no result.
      - V(authorized), on each host, adds a line for that key to C(authorized_keys) and returns the host's public
        host keys. The line carries C(restrict), C(from), C(expiry-time), a command that marks what is started, and
        the run's id. Lines of others stay byte for byte.
      - V(absent) removes processes, line, key and folder of the run.
      - V(swept) does the same for every run that is no longer alive.
      - V(made) and V(authorized) sweep before they do their work.
    type: str
    required: true
    choices: [made, authorized, absent, swept]
  run_id:
    description: Id of the run, 3 to 64 letters, digits, C(-) and C(_). Needed by all states but V(swept).
    type: str
  head:
    description: Name of the run's head. Needed by O(state=made) and O(state=authorized).
    type: str
  holder:
    description: Who starts the run, for whoever finds it in the way. By default the login user.
    type: str
    default: ""
  address:
    description: For O(state=made), the address (or name) under which the other hosts see the head.
    type: str
  public_key:
    description: For O(state=authorized), what O(state=made) returned.
    type: str
  from_addresses:
    description: For O(state=authorized), the addresses that O(state=made) returned; the key works only from these.
    type: list
    elements: str
  host_keys:
    description:
      - For O(state=authorized), the host's public host keys, if they come from the inventory. By default those in
        C(/etc/ssh).
    type: list
    elements: str
    default: []
  lifetime_seconds:
    description: For O(state=authorized), how long the line is valid. More than the run can take.
    type: int
    default: 600
  claim_seconds:
    description: For O(state=made), how long the run counts as alive before its test has started.
    type: int
    default: 60
  wait_seconds:
    description: How long O(state=made) and O(state=authorized) wait for another run to end before they fail.
    type: int
    default: 0
  authorized_keys:
    description: The file that sshd reads for this user.
    type: path
    default: ~/.ssh/authorized_keys
attributes:
  check_mode:
    support: full
    details: In check mode nothing is made, removed or ended.
  diff_mode:
    support: none
    details: There is no change to show.
  idempotent:
    support: full
seealso:
  - module: aidc.gpu_cluster.nccl_test
"""

EXAMPLES = r"""
- name: Make the key of a run on its head
  aidc.gpu_cluster.run_access:
    state: made
    run_id: l40s-20260101T000000Z-1a2b
    head: node1
    address: 192.0.2.1
    wait_seconds: 300
  register: head_access

- name: Let the key in on each host, from the head only, for ten minutes
  aidc.gpu_cluster.run_access:
    state: authorized
    run_id: l40s-20260101T000000Z-1a2b
    head: node1
    public_key: "{{ head_access.public_key }}"
    from_addresses: "{{ head_access.addresses }}"
    lifetime_seconds: 600

- name: Remove everything of the run
  aidc.gpu_cluster.run_access:
    state: absent
    run_id: l40s-20260101T000000Z-1a2b

- name: Remove what runs left that are no longer alive
  aidc.gpu_cluster.run_access:
    state: swept
"""

RETURN = r"""
changed:
  description: Always V(false).
  returned: always
  type: bool
  sample: false
before:
  description: Runs with a folder, runs with a line in C(authorized_keys), number of marked processes.
  returned: always
  type: dict
  sample: {runs: [], authorized_runs: [], processes: 0}
after:
  description: The same afterwards.
  returned: always
  type: dict
  sample: {runs: [l40s-20260101T000000Z-1a2b], authorized_runs: [l40s-20260101T000000Z-1a2b], processes: 0}
commands:
  description: Commands that were run.
  returned: always
  type: list
  elements: list
  sample: [[ssh-keygen, -q, -t, ed25519, -N, "", -C, aidc-run=r1a, -f, /home/ops/.aidc/runs/r1a/id]]
run_id:
  description: The option of that name.
  returned: always
  type: str
  sample: l40s-20260101T000000Z-1a2b
hostname:
  description: The host's own name.
  returned: success, not in check mode
  type: str
  sample: node1
run_dir:
  description: Folder of the run.
  returned: O(state=made) and O(state=authorized), not in check mode
  type: str
  sample: /home/ops/.aidc/runs/l40s-20260101T000000Z-1a2b
public_key:
  description: Public key of the run.
  returned: O(state=made), not in check mode
  type: str
  sample: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI
addresses:
  description: Numeric addresses of the head.
  returned: O(state=made), not in check mode
  type: list
  elements: str
  sample: [192.0.2.1]
host_keys:
  description: Public host keys of this host.
  returned: O(state=authorized), not in check mode
  type: list
  elements: str
  sample: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI]
swept_runs:
  description: Runs of which something was removed.
  returned: success
  type: list
  elements: str
  sample: [l40s-20251231T235900Z-77aa]
killed:
  description: Processes that were ended (pid, run_id, command).
  returned: success
  type: list
  elements: dict
  sample: []
left:
  description: Processes that could not be ended. They are stuck in the kernel.
  returned: success
  type: list
  elements: dict
  sample: []
alive:
  description: Other runs that are alive and were left alone.
  returned: O(state=absent) and O(state=swept), not in check mode
  type: list
  elements: dict
  sample: []
"""

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._access.io import Store
from ..module_utils._access.states import Wish, Work, perform, situation
from ..module_utils._host.errors import AidcError

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "state": {"type": "str", "required": True, "choices": ["made", "authorized", "absent", "swept"]},
    "run_id": {"type": "str"},
    "head": {"type": "str"},
    "holder": {"type": "str", "default": ""},
    "address": {"type": "str"},
    "public_key": {"type": "str", "no_log": False},
    "from_addresses": {"type": "list", "elements": "str"},
    "host_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "lifetime_seconds": {"type": "int", "default": 600},
    "claim_seconds": {"type": "int", "default": 60},
    "wait_seconds": {"type": "int", "default": 0},
    "authorized_keys": {"type": "path", "default": "~/.ssh/authorized_keys", "no_log": False},
}
REQUIRED_IF = [
    ("state", "made", ["run_id", "head", "address"]),
    ("state", "authorized", ["run_id", "head", "public_key", "from_addresses"]),
    ("state", "absent", ["run_id"]),
]


def wish_of(params: t.Mapping[str, t.Any]) -> Wish:
    names = {field.name for field in dataclasses.fields(Wish)}
    given = {name: value for name, value in params.items() if name in names and value is not None}
    lists = {name: tuple(params[name] or ()) for name in ("from_addresses", "host_keys")}
    return Wish(**{**given, **lists})


def run(module: AnsibleModule) -> dict[str, t.Any]:
    store = Store(authorized_keys=module.params["authorized_keys"])
    before = situation(store)
    work = Work() if module.check_mode else perform(store, wish_of(module.params))
    for process in work.left:
        module.warn(f"process {process.pid} of run {process.run_id} cannot be ended: {process.command}")
    return {
        "changed": False, "run_id": module.params["run_id"], "before": before,
        "after": before if module.check_mode else situation(store),
        "commands": work.commands, "swept_runs": sorted(work.swept_runs - {module.params["run_id"]}),
        "killed": [process.as_dict() for process in work.killed],
        "left": [process.as_dict() for process in work.left], **work.values,
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, required_if=REQUIRED_IF, supports_check_mode=True)
    try:
        module.exit_json(**run(module))
    except AidcError as error:
        module.fail_json(**{**error.as_result(), "changed": False, "run_id": module.params["run_id"]})


if __name__ == "__main__":
    main()
