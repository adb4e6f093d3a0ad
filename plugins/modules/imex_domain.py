#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: imex_domain
short_description: IMEX of one node of an NVLink domain - list of nodes, service, owner, and whether the domain is whole
version_added: 0.1.0
description:
  - NVIDIA's IMEX daemons let jobs share GPU memory between the trays of an NVLink domain. Each reads its list of nodes
    at its start only, and one whose list differs from the others' is blocked until all of them are started again.
  - So this module never replaces the list of a daemon that runs. It says RV(restart_required), and writes after the
    daemon was stopped on all nodes, which the role C(imex_domain) does with M(aidc.gpu_cluster.imex_plan). A list that
    is new here is written and started with O(may_join) only.
  - C(config.cfg) is changed by key, at the beginning of a line; comments and keys of others stay.
  - Before a start it is refused that the package is missing or of another version than the loaded driver, that not
    exactly one address of the list is one of this node's, and that another IMEX daemon runs, such as the one of the
    DRA driver for Kubernetes.
  - With O(state=ready) nothing is changed; the domain is asked, with a bound, until all nodes of the list and no others
    are READY, of one version, connected to each other in both directions, and the domain is UP.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: C(changed), C(diff) and RV(commands) equal those of the run.
  diff_mode:
    support: full
    details: Of C(config.cfg) the keys that are managed.
  idempotent:
    support: full
options:
  domain:
    description: Name of the domain, for messages.
    type: str
    default: ''
  nodes:
    description:
      - IP addresses of all nodes of the domain, in the order that they have on each node; those of
        RV(aidc.gpu_cluster.imex_plan#module:domains). Needed but with O(owner=dra).
    type: list
    elements: str
    default: []
  owner:
    description:
      - V(host) is the unit C(nvidia-imex.service), enabled, for Slurm.
      - V(dra) is the DRA driver for Kubernetes, which starts a daemon of its own. The unit is stopped, disabled and
        masked, as the two exclude each other.
      - V(dra_over_host) is the unit as with V(host), while the DRA driver only hands out channels (its feature gate
        C(HostManagedIMEXDaemon)).
    type: str
    choices: [host, dra, dra_over_host]
    default: host
  state:
    description:
      - V(started) is the files in place and the daemon enabled and running; V(configured) the same without a start.
      - V(stopped) stops the daemon for a restart of the whole domain, if nobody is in the way. It stays enabled.
        V(resumed) starts it with the files as they are, where such a restart was called off.
      - V(ready) asks whether the domain is whole. RV(ready) has the answer, RV(findings) why not.
    type: str
    choices: [started, configured, stopped, resumed, ready]
    default: started
  config:
    description:
      - Keys of C(config.cfg), such as C(IMEX_WAIT_FOR_QUORUM). C(IMEX_NODE_CONFIG_FILE) and C(IMEX_CMD_ENABLED) are
        set in any case. Each is read at the start of the daemon, so a change needs a restart of the domain.
    type: dict
    default: {}
  may_join:
    description:
      - The caller knows that the daemons that run on other nodes have this list and these keys, or that none runs.
        Without it a list that is new here is RV(deferred).
    type: bool
    default: false
  disruption_policy:
    description:
      - For a stop of the daemon. V(if_idle) wants that no process has a channel
        (C(/dev/nvidia-caps-imex-channels)) open and no step of Slurm runs. V(force) does not look at steps without a
        channel. V(never) stops nothing.
    type: str
    choices: [if_idle, force, never]
    default: if_idle
  wait_seconds:
    description: How long O(state=ready) waits for the domain; V(0) asks once.
    type: int
    default: 60
  tool_timeout_seconds:
    description:
      - Longest time in seconds that one question may take; less than 1 counts as 1. C(nvidia-imex-ctl) can hang on a
        broken domain. A start or stop has 120.
    type: int
    default: 20
seealso:
  - module: aidc.gpu_cluster.imex_plan
  - module: aidc.gpu_cluster.nvidia_driver
  - module: aidc.gpu_cluster.gpu_info
  - name: NVIDIA IMEX guide
    description: Configuration, connections, the command service.
    link: https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide
notes:
  - Needs root and systemd. A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart.
"""

EXAMPLES = r"""
- name: What would be done on this node; a new list is not written yet
  aidc.gpu_cluster.imex_domain:
    domain: nvl1
    nodes: [192.0.2.11, 192.0.2.12]
  check_mode: true
  become: true
  register: here

- name: Is the domain whole?
  aidc.gpu_cluster.imex_domain:
    domain: nvl1
    nodes: [192.0.2.11, 192.0.2.12]
    state: ready
  become: true
  register: proof
  failed_when: not proof.ready

- name: Kubernetes runs its own daemon here
  aidc.gpu_cluster.imex_domain:
    owner: dra
  become: true
"""

RETURN = r"""
before:
  description: The node as it was.
  returned: success
  type: dict
  contains: &state
    active:
      description: What systemd says of the unit.
      type: str
      sample: active
    enabled:
      description: Whether it starts at boot.
      type: bool
      sample: true
    masked:
      description: Whether it cannot be started.
      type: bool
      sample: false
    nodes:
      description: The list on the disk; null without one.
      type: list
      elements: str
      sample: [192.0.2.11, 192.0.2.12]
    config:
      description: The managed keys of C(config.cfg); null is a key that is not set.
      type: dict
      sample: {IMEX_CMD_ENABLED: "1"}
after:
  description: The node as it is now; in check mode, as it would be.
  returned: success
  type: dict
  contains: *state
commands:
  description: What was done, in check mode what would be done; one list per step.
  returned: always
  type: list
  elements: list
  sample: [[write, /etc/nvidia-imex/nodes_config.cfg], [systemctl, start, nvidia-imex.service]]
steps:
  description: The same steps with what they disturb (V(none) or V(driver)) and the reason.
  returned: success
  type: list
  elements: dict
  sample: [{command: [systemctl, stop, nvidia-imex.service], disruptive: driver,
    why: restart of all of nvlink_domain nvl1}]
deferred:
  description: What is wanted and was not done, with who is in the way.
  returned: success
  type: list
  elements: dict
  contains:
    holder:
      description: A process, a job, the unit, the domain or the policy.
      type: str
      sample: Slurm job 4242 step 0 (pid 4711 python3)
    why:
      description: What it does.
      type: str
      sample: has /dev/nvidia-caps-imex-channels/channel0 open
users_known:
  description: Whether all processes could be looked at; null if no stop was in question.
  returned: success
  type: bool
  sample: true
domain:
  description: The option of that name.
  returned: success
  type: str
  sample: nvl1
owner:
  description: The option of that name.
  returned: success
  type: str
  sample: host
running:
  description: Whether the unit runs; in check mode, whether it would.
  returned: success
  type: bool
  sample: true
restart_required:
  description: Whether the daemon runs with another list or other keys than wanted.
  returned: success
  type: bool
  sample: false
join_required:
  description: Whether it does not run, and has another list or other keys on the disk.
  returned: success
  type: bool
  sample: false
channels:
  description: Channel devices of the node.
  returned: success
  type: list
  elements: str
  sample: [/dev/nvidia-caps-imex-channels/channel0]
version:
  description: Version of the package; null without it.
  returned: success
  type: str
  sample: 580.159.04
driver_version:
  description: Version of the loaded driver; null without one.
  returned: success
  type: str
  sample: 580.159.04
ready:
  description: The answer of O(state=ready); null in other states, and with O(owner=dra).
  returned: success
  type: bool
  sample: true
daemon:
  description: State of this node's daemon.
  returned: success
  type: str
  sample: READY
domain_state:
  description: The domain as this node's C(nvidia-imex-ctl) shows it.
  returned: success
  type: dict
  sample: {state: UP, links: 1, links_connected: 1,
    nodes: [{address: 192.0.2.11, status: READY, version: 580.159.04}]}
proven_nodes:
  description: Of how many nodes the connection to each other is proven; V(0) if not, and for a domain of one node.
  returned: success
  type: int
  sample: 18
findings:
  description:
    - With O(state=ready), why the domain is not, with object, got, wanted and hint. Else what the next start of a
      daemon that runs would be refused for.
  returned: success
  type: list
  elements: dict
  sample: [{object: node 192.0.2.12, got: UNAVAILABLE, wanted: READY,
    hint: "is it up, and does nvidia-imex.service run there?"}]
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: package nvidia-imex
    got:
      description: What was found.
      type: str
      sample: 580.126.09
    wanted:
      description: What was wanted.
      type: str
      sample: 580.159.04, as the driver that is loaded
    hint:
      description: What to do.
      type: str
      sample: a partial upgrade, or a reload of the driver that is pending; see role nvidia_driver
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.imex_domain(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        result = configure(machine, argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
