#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: mlx5_info
short_description: Reads all mlx5 devices of a node
version_added: 0.1.0
description:
  - Reads every NVIDIA ConnectX or BlueField function that the driver C(mlx5_core) owns, its RDMA device, ports, GIDs
    and netdevs, the RDMA MTU, what the port is used for, and the MTU that systemd-networkd has saved for it.
    Beside that PCIe links, relations between functions, bonds and VLANs, counters, ECN, and the driver's origin.
  - sysfs is read first. The RDMA MTU comes from C(ibv_devinfo), uses and the device's maximum from C(ip).
  - A tool that is missing, hangs or prints something else is an entry in RV(problems), and the values it would have
    given are null. The module does not fail for it.
  - On a checkout or install of the collection an action plugin of the same name runs on the controller. In the folder
    C(aidc_state_dir), by default C(.state) beside the inventory, it
    stores the result there as C(mlx5_info/HOST.json), the fleet record, with the variable
    C(aidc_run_id) as run id. This is not a change.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: The module changes nothing. The fleet record is stored in check mode too.
  diff_mode:
    support: none
    details: There is nothing to compare.
  idempotent:
    support: full
options:
  rails:
    description:
      - PCI addresses of the compute rails in rail order; the first is rail 0.
      - They only number the devices in the result. An address that is not there is an entry in RV(problems).
    type: list
    elements: str
    default: []
  class:
    description:
      - What the class of the node says of the PCIe links of the rails (of all physical functions, if O(rails) is
        empty).
      - A link that is slower or narrower is an entry in RV(findings).
    type: dict
    default: {}
    suboptions:
      pcie_speed_gts:
        description: Least speed of the link in GT/s per lane; 32 is PCIe 5.0, 64 is PCIe 6.0.
        type: float
      pcie_width:
        description: Least number of lanes.
        type: int
  fabric:
    description:
      - Whether to read of the rails what only the audit compares, too, as RV(fabric). It asks more tools, and needs
        root for most of it.
    type: bool
    default: false
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_port
  - plugin: aidc.gpu_cluster.fleet_record
    plugin_type: lookup
  - plugin: aidc.gpu_cluster.rail_table
    plugin_type: filter
  - name: sysfs files of RDMA devices
    description: The kernel's own description.
    link: https://docs.kernel.org/admin-guide/abi-stable.html
notes:
  - QoS is read through C(dcb) or C(mlnx_qos), whichever fits the driver.
  - Root sees everything. Another user may miss the saved MTU (unreadable files) and the SSH connection.
  - The rate of a port that is down means nothing (mlx5 reports 40 Gb/s).
    Use RV(devices[].ports[].speed_gbps), which is null then.
"""

EXAMPLES = r"""
- name: Read all mlx5 devices
  aidc.gpu_cluster.mlx5_info:
  become: true
  register: mlx5

- name: Read them with their rail numbers
  aidc.gpu_cluster.mlx5_info:
    rails:
      - "0000:03:00.0"
      - "0002:03:00.0"
  become: true

- name: Rails whose PCIe link is slower or narrower than their class says
  aidc.gpu_cluster.mlx5_info:
    rails: ["0000:03:00.0"]
    class:
      pcie_speed_gts: 32
      pcie_width: 16
  register: mlx5
  failed_when: mlx5.findings | length > 0
"""

RETURN = r"""
devices:
  description: mlx5 functions with an RDMA device or a netdev, in the order of their PCI addresses.
  returned: always
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    pci_id:
      description: Vendor and device id.
      type: str
      sample: 15b3:1021
    rail:
      description: Position of the address in O(rails), or null.
      type: int
      sample: 0
    numa_node:
      description: NUMA node, or null where the firmware names none.
      type: int
      sample: 0
    driver:
      description: Kernel driver.
      type: str
      sample: mlx5_core
    is_vf:
      description: Whether it is a virtual function.
      type: bool
      sample: false
    firmware_version:
      description: Firmware version.
      type: str
      sample: 28.39.1002
    psid:
      description: PSID (board id).
      type: str
      sample: MT_0000000834
    rdma_device:
      description: RDMA device, whatever its naming style, or null where there is none.
      type: str
      sample: mlx5_0
    netdevs:
      description: All netdevs of the function.
      type: list
      elements: str
      sample: [ens1f0np0]
    netdev_details:
      description: The netdevs with what they are.
      type: list
      elements: dict
      contains:
        name:
          description: Netdev.
          type: str
          sample: ens1f0np0
        phys_port_name:
          description: Name of the port as the driver has it, or null.
          type: str
          sample: p0
        kind:
          description: V(uplink), V(vf_representor), V(sf_representor), V(pf_representor) or V(other).
          type: str
          sample: uplink
    pf:
      description: PCI address of the physical function of a VF, or null.
      type: str
      sample: null
    vfs:
      description: PCI addresses of the VFs of a physical function.
      type: list
      elements: str
      sample: ["0000:03:00.2"]
    pcie:
      description: The PCIe link as it is and as the device can do; null where sysfs says Unknown.
      type: dict
      contains:
        current_speed_gts:
          description: Speed in GT/s per lane.
          type: float
          sample: 32.0
        current_width:
          description: Lanes.
          type: int
          sample: 16
        max_speed_gts:
          description: Largest speed of the device.
          type: float
          sample: 32.0
        max_width:
          description: Largest width of the device.
          type: int
          sample: 16
    ports:
      description: Ports of the RDMA device; without one, a port that has only its netdev's values.
      type: list
      elements: dict
      contains:
        port:
          description: Port number.
          type: int
          sample: 1
        state:
          description: Logical state.
          type: str
          sample: ACTIVE
        phys_state:
          description: Physical state.
          type: str
          sample: LinkUp
        rate:
          description: Rate as sysfs has it; it means nothing on a port that is down.
          type: str
          sample: 400 Gb/sec (4X NDR)
        speed_gbps:
          description: Rate in Gb/s, null unless the port is ACTIVE.
          type: float
          sample: 400.0
        link_layer:
          description: V(Ethernet) (RoCE) or V(InfiniBand).
          type: str
          sample: Ethernet
        netdev:
          description: The port's netdev, or null if it cannot be told.
          type: str
          sample: ens1f0np0
        admin_state:
          description: V(up) or V(down) as set.
          type: str
          sample: up
        oper_state:
          description: Operational state of the netdev.
          type: str
          sample: up
        mac:
          description: MAC address.
          type: str
          sample: 02:00:00:00:00:11
        mtu_bytes:
          description: MTU of the netdev in bytes.
          type: int
          sample: 4200
        max_mtu_bytes:
          description: Largest MTU that the device takes, null if it states none.
          type: int
          sample: 9978
        rdma_mtu_bytes:
          description:
            - Active MTU that C(ibv_devinfo) shows, in bytes; 0 where the netdev's is too small for RoCE.
            - Null if the tool gave none, see RV(problems).
          type: int
          sample: 4096
        gids:
          description: Used entries of the GID table. An index is a fact of this moment, never a setting.
          type: list
          elements: dict
          contains:
            index:
              description: Index in the table.
              type: int
              sample: 3
            gid:
              description: GID as sysfs has it.
              type: str
              sample: 0000:0000:0000:0000:0000:ffff:c633:6401
            type:
              description: V(IB/RoCE v1) or V(RoCE v2).
              type: str
              sample: RoCE v2
            ndev:
              description: Netdev that the address belongs to; null if it is in another network namespace.
              type: str
              sample: ens1f0np0
            family:
              description: V(ipv4) or V(ipv6).
              type: str
              sample: ipv4
            address:
              description: Address in its usual form.
              type: str
              sample: 198.51.100.1
        excluded:
          description: Why the port must not be used as a rail, or null.
          type: str
          sample: carries the default route
        role:
          description:
            - V(rail) if the address is in O(rails), V(management) if the port carries the default route or the SSH
              connection, V(excluded) if it carries something else, V(unused) otherwise.
          type: str
          sample: rail
        bond:
          description: Bond that the netdev is a member of, or null.
          type: str
          sample: null
        bond_mtu_bytes:
          description: MTU of the bond, or null.
          type: int
          sample: null
        bond_members:
          description: All members of the bond.
          type: list
          elements: str
          sample: []
        vlans:
          description: VLANs on the netdev or its bond.
          type: list
          elements: dict
          contains:
            name:
              description: Netdev of the VLAN.
              type: str
              sample: ens1f0np0.100
            parent:
              description: Netdev that it is on.
              type: str
              sample: ens1f0np0
            mtu_bytes:
              description: Its MTU in bytes.
              type: int
              sample: 4200
        counters:
          description:
            - Counters that say something about RoCE, by name. One that this firmware has not is left out.
            - They count since the driver was loaded; compare two readings.
          type: dict
          sample: {out_of_sequence: 0, local_ack_timeout_err: 0, np_cnp_sent: 1333}
        ecn:
          description: Congestion control as far as the loaded driver shows it.
          type: dict
          contains:
            source:
              description: V(ecn) (files of DOCA-OFED), V(cc_params) (debugfs), or null.
              type: str
              sample: ecn
            np_enabled:
              description: For each priority whether marks are answered; null where the firmware did not say.
              type: list
              elements: bool
              sample: [true, true, true, true, true, true, true, true]
            rp_enabled:
              description: For each priority whether notifications slow the sender.
              type: list
              elements: bool
              sample: [true, true, true, true, true, true, true, true]
            cnp_dscp:
              description: DSCP of the notifications.
              type: int
              sample: 48
            cnp_priority:
              description: Priority of the notifications.
              type: int
              sample: 6
            min_time_between_cnps:
              description: Least time between two notifications in microseconds.
              type: int
              sample: 4
            why:
              description: Why something is null, or null.
              type: str
              sample: null
        qos:
          description:
            - Runtime QoS in the words of M(aidc.gpu_cluster.roce_qos), with the tool that told it. V(pfc) are the
              lossless priorities, V(dscp_map) the priority of each of the 64 DSCPs. Null if it could not be read.
          type: dict
          sample: {backend: dcb, dcbx: host, trust: dscp, pfc: [3]}
        qos_why:
          description: Why it is null, or null.
          type: str
          sample: null
        network_file:
          description: File of systemd-networkd that governs the netdev, or null.
          type: str
          sample: /etc/systemd/network/20-ens1f0np0.network
        saved_mtu_bytes:
          description: MTU that systemd-networkd sets at the next boot, or null if it sets none.
          type: int
          sample: 4200
        saved_mtu_file:
          description: File that decides the saved MTU.
          type: str
          sample: /etc/systemd/network/20-ens1f0np0.network.d/50-aidc-mtu.conf
problems:
  description: What could not be read or is not as the question assumes.
  returned: always
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: ibv_devinfo
    got:
      description: What was found.
      type: str
      sample: no answer within 10 s; ended by us
    wanted:
      description: What was wanted.
      type: str
      sample: its text with an active_mtu of each port
    hint:
      description: What to do.
      type: str
      sample: the driver or firmware does not answer; look at dmesg
stack:
  description: The driver's origin. What is loaded decides; a package that is installed may not be.
  returned: always
  type: dict
  contains:
    backend:
      description: V(ofed) or V(inbox) by the loaded driver, null without one.
      type: str
      sample: inbox
    version:
      description: Version of the loaded mlx5_core; the kernel's own usually has none.
      type: str
      sample: 24.10-2.1.8
    installed:
      description: V(ofed) or V(inbox) by the module on disk.
      type: str
      sample: inbox
    installed_version:
      description: Version of the module on disk.
      type: str
      sample: 24.10-2.1.8
    package:
      description: What C(ofed_info) names, or null.
      type: str
      sample: OFED-internal-25.10-1.7.1
findings:
  description: PCIe links below O(class), and a loaded driver that is not the installed one.
  returned: always
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: PCIe link of 0000:03:00.0
    got:
      description: What was found.
      type: str
      sample: 16 GT/s x16
    wanted:
      description: What was wanted.
      type: str
      sample: at least 32 GT/s x16, as the class says
    hint:
      description: What to do.
      type: str
      sample: the device can do 32 GT/s x16; look at the slot, the riser and the firmware's settings
needs_root:
  description: Files that this user may not read.
  returned: always
  type: list
  elements: str
  sample: ["/sys/kernel/debug/mlx5/0000:03:00.0/cc_params"]
fabric:
  description: What the audit compares beside the rest. What cannot be read is null.
  returned: with O(fabric)
  type: dict
  contains:
    ports:
      description:
        - By PCI address whether a BlueField is in DPU mode, global pause, RDMA-CM's ToS and mode, and the traffic
          class of verbs (null with the inbox driver).
      type: dict
      sample: {"0000:03:00.0": {dpu_mode: null, global_pause: "off", rdma_cm: {tos: 104, roce_mode: v2},
        traffic_class: null}}
    netdevs:
      description:
        - By netdev its addresses, its managers, a file of theirs that is gone after a boot, what is saved, and the
          effective sysctls.
      type: dict
      sample: {ens1f0np0: {addresses: [192.0.2.10/24], owners: [systemd-networkd], volatile: null,
        saved: {mtu_bytes: 4200, addresses: [192.0.2.10/24], ignore_carrier: true},
        sysctls: {arp_ignore: 1, arp_announce: 2, rp_filter: 2}}}
    rules:
      description: Routing rules with a source and a numbered table.
      type: list
      elements: str
      sample: [priority 1001 from 192.0.2.10 table 101]
    routes:
      description: By netdev the routes of numbered tables.
      type: dict
      sample: {ens1f0np0: [192.0.2.0/24 table 101]}
    lldpad:
      description: Whether lldpad runs.
      type: bool
      sample: false
    boot_unit:
      description: What systemd says of the boot tool's unit.
      type: str
      sample: enabled
    intent:
      description: Whether there is an intent file, its schema, and why it cannot be read.
      type: dict
      sample: {present: true, schema_version: 1, problem: null}
record_file:
  description: Where the controller stored the result.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/mlx5_info/gb200-1.json
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fabric import io as fabric_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import argspec, info_io


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.info(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    read = fabric_io.read if module.params["fabric"] else info_io.read
    result = read(machine, module.params["rails"], argspec.node_class(module.params))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
