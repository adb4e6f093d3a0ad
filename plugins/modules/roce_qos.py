#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: roce_qos
short_description: Sets the QoS of RoCE v2 ports, the whole port as one state
version_added: 0.1.0
description:
  - Sets trust, the map of all 64 DSCPs, ETS, PFC, ECN, the class of CNPs, the ToS of RDMA-CM, the traffic class of
    verbs and the owner of DCBX, for all listed ports of a node in one call. Buffers and cable length only if given.
  - DSCP and priority of RoCE data and of CNPs are given once; ToS byte, traffic class, DSCP map and PFC bit are derived
    from them and checked against each other.
  - Every value is read first and only differences are written, as a PFC write stops the link for some seconds. After
    the writes all is read back; a difference is a failure, as several tools report success without effect.
  - Two tools can do it. C(mlnx_qos) is used beside the OFED driver, C(dcb) of iproute2 else. What is a file of the
    kernel (C(ecn/), C(cc_params), configfs C(rdma_cm), C(tc/)) is used where it is there.
  - All of this is runtime state of the port, and is lost at a reboot or driver reload. With O(persistent) the options
    are kept on the host, and the boot tool of M(aidc.gpu_cluster.fabric_boot) sets the state again.
  - A virtual function, a BlueField in DPU mode and a port with link layer InfiniBand are refused. So is a step that
    stops the link of a port that carries a network file system or, without O(allow_management), the default route or
    the SSH connection.
  - Of a bond, list the ports; PFC and the like are set on each, ToS and traffic class on the bond's RDMA device.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
  - aidc.gpu_cluster.management
attributes:
  check_mode:
    support: full
    details:
      - Everything but the writes is done, so C(changed), C(diff) and RV(commands) equal those of the run.
      - To read the ToS of RDMA-CM, a folder C(/sys/kernel/config/rdma_cm/DEVICE) is made and removed again.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  ports:
    description:
      - Ports to set; each PCI address once.
      - Every option of a class below may be given for a port; what is not given is taken from the option of the same
        name at the top.
    type: list
    elements: dict
    required: true
    suboptions:
      pci:
        description: PCI address of the function, with its domain.
        type: str
        required: true
      dscp: &dscp
        description: DSCP of RoCE data, 0 to 63.
        type: int
      priority: &priority
        description: Priority of RoCE data, 0 to 7.
        type: int
      cnp: &cnp
        description: The class of congestion notification packets. Its priority must be another one than that of data.
        type: dict
        suboptions:
          dscp: &cnp_dscp
            description: DSCP of CNPs, 0 to 63.
            type: int
          priority: &cnp_priority
            description: Priority of CNPs, 0 to 7.
            type: int
      lossless: &lossless
        description: PFC on O(priority) and on no other, or on none with V(false).
        type: bool
      trust: &trust
        description: What a packet's priority is taken from; with V(pcp) the DSCP map is not managed.
        type: str
        choices: [dscp, pcp]
      ecn: &ecn
        description:
          - Congestion notification on O(priority), both sides (NP and RP). Other priorities are left as they are.
          - The notification point is one switch for the port, whatever priority is named.
        type: bool
      bandwidth_percent: &bandwidth
        description: Share of RoCE data in ETS, 1 to 99, unless O(ets) is given; the other classes divide the rest.
        type: int
      ets: &ets
        description:
          - ETS as a whole. If not given, priority n is in traffic class n, the class of CNPs is strict, all others are
            ets.
        type: dict
        suboptions:
          prio_tc:
            description: Traffic class of each of the eight priorities.
            type: list
            elements: int
            required: true
          tc_tsa:
            description: V(strict), V(ets) or V(vendor) for each of the eight traffic classes.
            type: list
            elements: str
            required: true
          tc_bw:
            description: Percent of each of the eight traffic classes; 100 together, 0 for those that are not ets.
            type: list
            elements: int
            required: true
      buffer: &buffer
        description: Receive buffers. Not managed unless given; take the sizes from the fabric's owner.
        type: dict
        suboptions:
          prio_buffer:
            description: Buffer of each of the eight priorities.
            type: list
            elements: int
            required: true
          buffer_size_bytes:
            description: Size of each of the eight buffers.
            type: list
            elements: int
            required: true
      cable_length_metres: &cable
        description: Length of the cable, 1 to 999. Not managed unless given; it acts only with manual buffers.
        type: int
      dcbx_owner: &owner
        description:
          - Who decides PFC, ETS and the DSCP map. With V(firmware) these groups are not managed.
        type: str
        choices: [host, firmware]
      unmanaged_groups: &unmanaged
        description: State groups to leave alone.
        type: list
        elements: str
        choices: &groups [dcbx, trust, dscp_map, ets, cable_length, buffer, pfc, ecn, cnp, cm_tos, traffic_class]
      require_groups: &require
        description:
          - State groups that must be possible. A group that this driver or tool cannot set is else reported in
            RV(unsupported) and no error.
        type: list
        elements: str
        choices: *groups
  dscp:
    <<: *dscp
    default: 26
  priority:
    <<: *priority
    default: 3
  cnp:
    description: The class of congestion notification packets. Its priority must be another one than that of data.
    type: dict
    suboptions:
      dscp:
        <<: *cnp_dscp
        default: 48
      priority:
        <<: *cnp_priority
        default: 6
  lossless:
    <<: *lossless
    default: true
  trust:
    <<: *trust
    default: dscp
  ecn:
    <<: *ecn
    default: true
  bandwidth_percent:
    <<: *bandwidth
    default: 50
  ets: *ets
  buffer: *buffer
  cable_length_metres: *cable
  dcbx_owner:
    <<: *owner
    default: host
  unmanaged_groups:
    <<: *unmanaged
    default: []
  require_groups:
    <<: *require
    default: []
  take_over:
    description:
      - Take a port over whose DCBX the firmware owns, and stop and disable C(lldpad). Without it both are an error, as
        either would overwrite what this module sets.
    type: bool
    default: false
  persistent:
    description:
      - Keep the options of this call in the host's intent, C(/etc/aidc/intent.json), from which the boot tool of
        M(aidc.gpu_cluster.fabric_boot) sets the state again after a boot or a reload of the driver.
      - The last call counts, with the ports that it lists. With V(false) the intent is left as it is.
    type: bool
    default: true
  disruption_policy:
    description:
      - What to do with a step that stops the link of a port while somebody uses the port or the node - a connection in
        C(rdma resource), a process with the RDMA device open, a step of Slurm, a process with a GPU, a mount over RDMA.
      - V(if_idle) leaves all that decides the class of the port's packets (trust, DSCP map, ETS, PFC, buffers, ToS and
        traffic class) for a later run and says so in RV(deferred), with each holder. Owner of DCBX, ECN and the class
        of CNPs are set.
      - V(force) goes on, V(never) never stops a link.
      - Open device files, cgroups and mounts are looked at without any tool. Where C(rdma) cannot tell,
        RV(rdma_users_known) is V(false), as connections of the kernel's own that are no mount are not seen then.
    type: str
    choices: [if_idle, force, never]
    default: if_idle
  backend:
    description: Tool for what is reached through dcbnl; V(auto) chooses by what is there.
    type: str
    choices: [auto, dcb, mlnx_qos]
    default: auto
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_port
  - name: dcb
    description: The tool of iproute2.
    link: https://man7.org/linux/man-pages/man8/dcb.8.html
  - name: mlnx-tools
    description: Source of mlnx_qos.
    link: https://github.com/Mellanox/mlnx-tools
  - name: en_dcbnl.c of the Linux kernel
    description: What the driver does with each value.
    link: https://github.com/torvalds/linux/blob/master/drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c
  - name: configfs-rdma_cm
    description: The default ToS of RDMA-CM.
    link: https://github.com/torvalds/linux/blob/master/Documentation/ABI/testing/configfs-rdma_cm
notes:
  - Needs root.
  - A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart; the error names the holder.
  - The switches must have the same classes; this module sees the host's side only.
"""

EXAMPLES = r"""
- name: DSCP 26 lossless on priority 3, CNPs with DSCP 48 on priority 6
  aidc.gpu_cluster.roce_qos:
    ports:
      - pci: "0000:03:00.0"
      - pci: "0002:03:00.0"
  become: true

- name: A fabric with other classes, on ports whose DCBX the firmware owned
  aidc.gpu_cluster.roce_qos:
    dscp: 24
    priority: 4
    cnp:
      dscp: 56
      priority: 7
    ports:
      - pci: "0000:03:00.0"
      - pci: "0000:41:00.0"
        lossless: false
    take_over: true
  become: true

- name: The traffic class of verbs must be set, which only the OFED driver can
  aidc.gpu_cluster.roce_qos:
    ports:
      - pci: "0000:03:00.0"
    require_groups: [traffic_class]
  become: true
"""

RETURN = r"""
before:
  description: The managed groups of the ports as they were; null for a group that cannot be had.
  returned: success
  type: list
  elements: dict
  contains: &state
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    dcbx:
      description: Owner of DCBX.
      type: str
      sample: host
    trust:
      description: What the priority is taken from.
      type: str
      sample: dscp
    dscp_map:
      description: Priority of each of the 64 DSCPs.
      type: list
      elements: int
      sample: [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    ets:
      description: Class of each priority, kind and share of each class.
      type: dict
      sample: {prio_tc: [0, 1, 2, 3, 4, 5, 6, 7], tc_bw: [10, 8, 8, 50, 8, 8, 0, 8],
               tc_tsa: [ets, ets, ets, ets, ets, ets, strict, ets]}
    cable_length:
      description: Length of the cable in metres.
      type: int
      sample: 7
    buffer:
      description: Buffer of each priority, and the sizes in bytes.
      type: dict
      sample: {prio_buffer: [0, 0, 0, 1, 0, 0, 0, 0], buffer_size: [130944, 130944, 0, 0, 0, 0, 0, 0]}
    pfc:
      description: Priorities with PFC.
      type: list
      elements: int
      sample: [3]
    ecn:
      description: Notification point and reaction point on the priority of RoCE data.
      type: dict
      sample: {priority: 3, np: true, rp: true}
    cnp:
      description: Class of CNPs.
      type: dict
      sample: {dscp: 48, priority: 6}
    cm_tos:
      description: ToS byte of RDMA-CM.
      type: int
      sample: 104
    traffic_class:
      description: Traffic class of verbs, 0 if none is set.
      type: int
      sample: 104
after:
  description: The same as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *state
commands:
  description:
    - What was done, in check mode what would be done, in order; one list per step.
    - A file of the kernel is V(write) with path and value.
  returned: always
  type: list
  elements: list
  sample:
    - [dcb, pfc, set, dev, ens1f0np0, prio-pfc, "all:off", "3:on"]
    - [write, /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos, "104"]
steps:
  description: The same steps with what they set and what they disturb.
  returned: success
  type: list
  elements: dict
  contains:
    command:
      description: As in RV(commands).
      type: list
      elements: str
      sample: [dcb, pfc, set, dev, ens1f0np0, prio-pfc, "all:off", "3:on"]
    groups:
      description: State groups that the step sets.
      type: list
      elements: str
      sample: [pfc]
    disruptive:
      description: V(none), or V(link) if traffic of the link stops for a moment.
      type: str
      sample: link
    why:
      description: The reason for the step.
      type: str
      sample: "pfc is []"
    pci:
      description: PCI address of the port, null for a step that serves several.
      type: str
      sample: "0000:03:00.0"
deferred:
  description: Ports in use, with the steps that wait for their holders.
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address of the port.
      type: str
      sample: "0000:03:00.0"
    netdev:
      description: Netdev.
      type: str
      sample: ens1f0np0
    steps:
      description: What is not done, as in RV(commands).
      type: list
      elements: list
      sample: [[dcb, pfc, set, dev, ens1f0np0, prio-pfc, "all:off", "3:on"]]
    holders:
      description: Who uses the port.
      type: list
      elements: str
      sample: [Slurm job 4242 step 0 (pid 1234 all_reduce_perf) holds mlx5_0]
rdma_users_known:
  description: Whether all users could be seen; null if no step stops a link, or the policy is V(never).
  returned: success
  type: bool
  sample: true
armed:
  description: The armed revert, which the controller cancels; null if none is armed. See O(allow_management).
  returned: success
  type: dict
  sample: {id: mlx5_port-1a2b3c4d, seconds: 60, timer: systemd}
backend:
  description: The tool that was used.
  returned: success
  type: str
  sample: dcb
unsupported:
  description: Managed groups that this driver or tool cannot set, and why.
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address of the port.
      type: str
      sample: "0000:03:00.0"
    group:
      description: The group.
      type: str
      sample: traffic_class
    reason:
      description: The reason.
      type: str
      sample: the inbox driver cannot override the traffic class of verbs
findings:
  description: What this module does not change but what spoils its work; global pause beside PFC.
  returned: success
  type: list
  elements: dict
  contains: &problem
    object:
      description: What it is about.
      type: str
      sample: global pause of 0000:03:00.0 (ens1f0np0)
    got:
      description: What was found.
      type: str
      sample: rx and tx on
    wanted:
      description: What was wanted.
      type: str
      sample: off where PFC is on
    hint:
      description: What to do.
      type: str
      sample: mlx5_port turns it off
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains: *problem
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.io import recorded
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.io import armed_request
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import argspec, intent
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.spec(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        request, problems = intent.request(module.params)
        if problems:
            raise AidcError(problems)
        request = armed_request(request, module.params)
        result = recorded(machine, "roce_qos", module.params, module.check_mode,
                          lambda machine: configure(machine, request, module.check_mode),
                          {"groups": [], "pci": None})
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
