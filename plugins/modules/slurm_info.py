#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_info
short_description: Reads a Slurm cluster as one host sees it - nodes, partitions, reservations, configuration, daemons
version_added: 0.1.0
description:
  - Reads what Slurm's tools on this host say, in one call, and changes nothing. It needs no privileges; what this user
    may not read, or what no tool is there for, is in RV(missing) with a hint. It does not fail for it.
  - On a host without Slurm, RV(installed) is V(false).
  - On the controller the result is stored in the fleet record, as C(slurm_info/HOST.json) in C(aidc_state_dir), if the
    module is called by its full name.
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
  gather:
    description: What to read. V(versions) and V(daemons) are of this host, the rest is of the cluster.
    type: list
    elements: str
    choices: [versions, daemons, controllers, config, partitions, reservations, nodes]
    default: [versions, daemons, controllers, config, partitions, reservations, nodes]
  nodes:
    description: Only these nodes are returned; by default all.
    type: list
    elements: str
    default: []
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 30
seealso:
  - module: aidc.gpu_cluster.slurm_node
"""

EXAMPLES = r"""
- name: All of the cluster
  aidc.gpu_cluster.slurm_info:
  register: cluster

- name: Two nodes, and whether slurmd runs here
  aidc.gpu_cluster.slurm_info:
    gather: [nodes, daemons]
    nodes: [gb200-r01-t03, gb200-r01-t07]
"""

RETURN = r"""
installed:
  description: Whether C(scontrol) is there.
  returned: success
  type: bool
  sample: true
versions:
  description: Releases of the programs on this host, null for one that is not installed or does not say.
  returned: success and asked for
  type: dict
  sample: {scontrol: 24.11.5, slurmctld: 24.11.5, slurmd: null, slurmdbd: null}
daemons:
  description: Units of this host that are there, in systemd's words.
  returned: success and asked for
  type: dict
  sample: {slurmctld: {active: active, enabled: enabled}, munge: {active: active, enabled: enabled}}
controllers:
  description: Controllers, and whether they answer.
  returned: success, asked for, Slurm is installed
  type: list
  elements: dict
  sample: [{role: primary, host: ctl01, up: true}]
config:
  description: What slurmctld runs with, by key of C(scontrol show config).
  returned: success, asked for, Slurm is installed
  type: dict
  sample: {ClusterName: lab, SLURM_VERSION: 24.11.5, TopologyPlugin: topology/block}
config_hash:
  description: One SHA-256 of RV(config) without what changes by itself; null if it could not be read.
  returned: success, asked for, Slurm is installed
  type: str
  sample: 5f2d0b6c1e
config_files:
  description: SHA-256 of each file in C(/etc/slurm) and C(/run/slurm/conf), null for one that cannot be read.
  returned: success, asked for, Slurm is installed
  type: dict
  sample: {/etc/slurm/slurm.conf: 9c1185a5c5}
partitions:
  description: Partitions.
  returned: success, asked for, Slurm is installed
  type: list
  elements: dict
  sample: [{name: train, state: UP, default: true, nodes: "gb1-[01-18]", max_time: UNLIMITED, nodes_total: 18,
            cpus_total: 2592}]
reservations:
  description: Reservations. Times are the host's own.
  returned: success, asked for, Slurm is installed
  type: list
  elements: dict
  sample: [{name: maint, state: ACTIVE, nodes: gb1-01, start: "2026-01-02T03:04:05", end: "2026-01-03T03:04:05",
            flags: [MAINT], users: root}]
nodes:
  description: Nodes.
  returned: success, asked for, Slurm is installed
  type: list
  elements: dict
  contains:
    name:
      description: Name.
      type: str
      sample: gb200-r01-t03
    state:
      description: Base and flags, the flags in the order of the alphabet.
      type: str
      sample: IDLE+DRAIN
    drain:
      description: Whether it is to get no new jobs.
      type: bool
      sample: true
    drained:
      description: Whether it is IDLE+DRAIN without COMPLETING and without a reboot under way.
      type: bool
      sample: true
    down:
      description: Whether Slurm takes it for down.
      type: bool
      sample: false
    usable:
      description: Whether Slurm may start jobs on it.
      type: bool
      sample: false
    reboot:
      description: Reboot by C(scontrol reboot) that is under way, V(none), V(requested) or V(issued).
      type: str
      sample: none
    invalid:
      description: With INVALID_REG, what the node's registration lacked (C(field), C(got), C(wanted)).
      type: list
      elements: dict
      sample: [{field: gres/gpu, got: "2", wanted: "4"}]
    reason:
      description: The whole reason.
      type: str
      sample: "aidc:gate:20260102T0304: rail 2 slow"
    owner:
      description: Source of a reason of ours, V(other) for anybody else's, null without one.
      type: str
      sample: gate
    run_id:
      description: Run of a reason of ours, or null.
      type: str
      sample: 20260102T0304
    appended:
      description: What slurmctld has added to the reason.
      type: list
      elements: str
      sample: [reboot issued]
    reason_user:
      description: Who set the reason.
      type: str
      sample: root
    reason_time:
      description: When, in seconds since 1970, or null.
      type: float
      sample: 1767323045.0
    hostname:
      description: Host name.
      type: str
      sample: gb200-r01-t03
    address:
      description: Address.
      type: str
      sample: 192.0.2.3
    gres:
      description: Generic resources as configured.
      type: str
      sample: gpu:gb200:4
    gres_used:
      description: Those in use.
      type: str
      sample: gpu:gb200:0(IDX:N/A)
    cpus:
      description: CPUs as configured.
      type: int
      sample: 144
    real_memory_mib:
      description: Memory as configured, in MiB.
      type: int
      sample: 860000
    features:
      description: Features.
      type: list
      elements: str
      sample: [gb200, r01]
    partitions:
      description: Partitions.
      type: list
      elements: str
      sample: [train]
    version:
      description: Release of its slurmd.
      type: str
      sample: 24.11.5
    boot_time:
      description: When it booted, in seconds since 1970, or null.
      type: float
      sample: 1767300000.0
summary:
  description: Numbers of nodes, and releases of their slurmd.
  returned: success, V(nodes) asked for, Slurm is installed
  type: dict
  sample: {total: 18, usable: 17, drained: 1, draining: 0, down: 0, invalid: 0, versions: [24.11.5]}
missing:
  description: What could not be read, and what to do.
  returned: success
  type: list
  elements: dict
  sample:
    - {object: scontrol ping, got: "exit status 1", wanted: an answer, hint: does slurmctld run}
record_file:
  description: Where the controller stored the result.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/slurm_info/ctl01.json
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import info_argspec, info_io


def main() -> None:
    module = AnsibleModule(argument_spec=info_argspec.info(), supports_check_mode=True)
    machine = Machine(run=info_io.large_runner(), tool_timeout_seconds=max(
        1.0, float(module.params["tool_timeout_seconds"])))
    found = info_io.read(machine, module.params["gather"], set(module.params["nodes"]))
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
