#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This is the documentation of the action plugin of the same name, which does the work on the controller.
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_render
short_description: Renders and checks Slurm's configuration files from the inventory and the fleet record
version_added: 0.1.0
description:
  - Renders C(slurm.conf), C(gres.conf), C(cgroup.conf), C(topology.conf) or from Slurm 25.05 on C(topology.yaml), and
    C(slurmdbd.conf), as texts on the controller. No host is contacted and no file is written;
    M(aidc.gpu_cluster.slurm_config) installs them.
  - Members and their order come from the inventory's groups C(slurm_controller) (the first host is the primary, the
    second its backup), C(slurm_dbd) and C(slurm_compute), whatever C(--limit) leaves of the play. A host that is down
    never shrinks the cluster.
  - What a node is, says the variable C(slurm_node) of its class or host; see the notes. What it does not say is taken
    from the fleet record (M(aidc.gpu_cluster.host_info)). Where both say it and differ, the class wins and the
    difference is a finding, so that a defect does not become the configuration.
  - Only what a version of Slurm has is rendered. Block topology and C(switch/nvidia_imex) come with 24.05.
  - The texts are read again and compared with each other before they are returned. With a finding of severity V(error)
    the task fails, and there are no files.
  - The same inventory and record give the same bytes. 10,000 nodes take seconds.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Nothing is changed. M(aidc.gpu_cluster.slurm_config) shows the difference to a host's files.
  idempotent:
    support: full
options:
  cluster_name:
    description: C(ClusterName); up to 40 of a-z, 0-9, _ and -.
    type: str
    default: aidc
  version:
    description: Version of Slurm on the controller, such as V(24.11.5). It must be known.
    type: str
  ownership:
    description:
      - V(whole) renders all files of a cluster that is ours.
      - V(include) renders only C(aidc-nodes.conf), C(aidc-partitions.conf) and C(aidc-gres.conf), which the files of a
        cluster that others own include. RV(findings) has the lines that theirs need. The topology stays theirs.
    type: str
    choices: [whole, include]
    default: whole
  partitions:
    description:
      - Partitions, each with C(name), C(groups) (of the inventory; a group that is not there is left out), and maybe
        C(default), C(max_time) and C(options), a dictionary of more keys of C(PartitionName).
      - An empty list is the default.
      - C(DefMemPerCPU), and for nodes with GPUs C(DefCpuPerGPU), are computed unless C(options) has a C(DefMemPer*). A
        job that asks for no memory would else get all of a node.
    type: list
    elements: dict
    default:
      - {name: train, groups: [gb200], default: true}
      - {name: infer, groups: [l40s]}
      - {name: cpu, groups: [epyc9754]}
  topology:
    description:
      - V(auto) is V(block) where the version has it and hosts have the variable C(nvlink_domain); with an older version
        V(tree) if each host has a leaf group; else V(flat).
      - Before 25.05 V(block) holds for the whole cluster, so that hosts without a domain get blocks, too. From 25.05 on
        only partitions whose hosts all have a domain use it.
    type: str
    choices: [auto, block, tree, flat]
    default: auto
  block_size:
    description:
      - Base size of blocks. 0 computes it, 16 for complete domains of 18, so that a domain with two members out for
        repair still plans; less where a domain has fewer members, which is a finding.
      - A domain with fewer members than a given size is refused, as slurmctld would.
    type: int
    default: 0
  leaf_groups:
    description: Regular expression of the groups that are leaf switches, for V(tree).
    type: str
    default: leaf.*
  cgroup:
    description:
      - V(auto) lets slurmd find out which version of cgroups the host has.
      - V(disabled) is for hosts that offer none, such as containers; jobs are not confined then.
    type: str
    choices: [auto, v2, v1, disabled]
    default: auto
  memory_reserve_mib:
    description:
      - MiB that C(RealMemory) is below what was measured, then rounded down to whole GiB. A node that registers with
        less than C(RealMemory) is drained.
      - The variable C(slurm_memory_reserve_mib) of a host wins.
    type: int
    default: 2048
  mem_spec_limit_mib:
    description: C(MemSpecLimit), MiB of each node that jobs do not get; 0 for none. Not rendered without cgroups.
    type: int
    default: 0
  health_program:
    description: C(HealthCheckProgram), a path on the compute nodes; empty for none.
    type: str
    default: ""
  health_interval:
    description: Seconds between its runs; 0 for none.
    type: int
    default: 300
  prolog:
    description:
      - C(Prolog), empty for none. A path must be there on each node; a bare name is taken from the configuration folder
        and sent along to nodes without files of their own.
    type: str
    default: ""
  epilog:
    description: C(Epilog), as O(prolog).
    type: str
    default: ""
  reboot_program:
    description: C(RebootProgram), a path on the compute nodes; empty for none.
    type: str
    default: ""
  options:
    description:
      - More keys of C(slurm.conf). They replace defaults of ours such as C(ReturnToService). A key that follows from
        the inventory is refused, and so is a path of one architecture, as nodes of another one share the file.
    type: dict
    default: {}
  config_dir:
    description: Folder of the files on the hosts.
    type: str
    default: /etc/slurm
  state_dir:
    description: C(StateSaveLocation); with a backup controller both must see it.
    type: str
    default: /var/lib/slurm/slurmctld
  user:
    description: C(SlurmUser).
    type: str
    default: slurm
  database_host:
    description: Host of the database as slurmdbd sees it.
    type: str
    default: localhost
  database_user:
    description:
      - User of the database. The password never comes here. C(slurmdbd.conf) includes C(slurmdbd-secret.conf) of the
        same folder, which has the line C(StoragePass=...) and the mode 0600.
    type: str
    default: slurm
  database_name:
    description: Name of the database.
    type: str
    default: slurm_acct_db
  max_age_hours:
    description: A record that is older is a finding.
    type: float
    default: 24.0
  use_records:
    description: Whether the fleet record is read. Without it, C(slurm_node) must say all.
    type: bool
    default: true
notes:
  - An option that the task does not give is the variable C(slurm_OPTION), such as C(slurm_cluster_name), if there is
    one.
  - C(slurm_node) is a dictionary of C(sockets), C(cores_per_socket), C(threads_per_core), C(memory_mib) (all of the
    node, as C(slurmd -C) says it), C(gpus), C(gres_type), C(gpu_files) (V(/dev/nvidia[0-3])) and C(cores), one text for
    each GPU. What is 0 or not there is not said. Number and type of GPUs follow else from C(node_class_gpu_count)
    and C(node_class_name).
  - Without C(cores) those of the GPU's NUMA node are taken from the record, if a node is a socket. Order of device
    files and of PCI addresses may differ on your board; then say C(cores).
  - C(slurm_node_address) of a host is C(NodeAddr), where its name does not resolve.
seealso:
  - module: aidc.gpu_cluster.slurm_config
  - module: aidc.gpu_cluster.host_info
  - plugin: aidc.gpu_cluster.slurm_hostlist
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Files of the cluster
  aidc.gpu_cluster.slurm_render:
    cluster_name: prod
    version: "24.11.5"
  register: rendered
  run_once: true

- name: Nodes and partitions for a cluster that is there
  aidc.gpu_cluster.slurm_render:
    ownership: include
    version: "24.11.5"
    partitions:
      - {name: train, groups: [gb200], max_time: 2-00:00:00, options: {PriorityTier: 10}}
  run_once: true
"""

RETURN = r"""
files:
  description: Text of each file by its name. None where the task failed.
  returned: always
  type: dict
  sample: {cgroup.conf: "CgroupPlugin=autodetect\n"}
sha256:
  description: SHA-256 of each file.
  returned: always
  type: dict
  sample: {cgroup.conf: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}
absent:
  description: Names that must not lie beside them, as Slurm would read them.
  returned: always
  type: list
  elements: str
  sample: [topology.yaml]
findings:
  description: What is odd. V(error) fails the task.
  returned: always
  type: list
  elements: dict
  contains:
    severity:
      description: V(error), V(warning) or V(note).
      type: str
      sample: warning
    object:
      description: What it is about; many hosts with the same are one host list.
      type: str
      sample: "gb1-[03,07]: GPUs in the fleet record"
    got:
      description: What was found.
      type: str
      sample: "3"
    wanted:
      description: What was wanted.
      type: str
      sample: "4"
    hint:
      description: What to do.
      type: str
      sample: Slurm will drain it (INVALID_REG); repair it, the configuration keeps the wanted count
nodes:
  description: For each host its C(class), C(cpus), C(memory_mib), C(gpus), C(domain) and C(leaf).
  returned: always
  type: dict
  sample: {gb1-01: {class: gb200, cpus: 144, memory_mib: 978944, gpus: 4, domain: nvl1, leaf: leaf_nvl1}}
version:
  description: Release family that the files are for.
  returned: always
  type: str
  sample: "24.11"
topology:
  description: What was made of it.
  returned: always
  type: dict
  contains:
    kind:
      description: V(block), V(tree) or V(flat).
      type: str
      sample: block
    block_size:
      description: Base size of blocks; 0 without blocks.
      type: int
      sample: 16
    blocks:
      description: Hosts of each block.
      type: dict
      sample: {nvl1: [gb1-01, gb1-02]}
    switches:
      description: Hosts of each switch.
      type: dict
      sample: {}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._slurm.render_argspec import RENDER


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=RENDER, supports_check_mode=True)
    module.fail_json(msg="this runs on the controller only: call it by its full name, aidc.gpu_cluster.slurm_render")


if __name__ == "__main__":
    main()
