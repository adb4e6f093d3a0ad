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
  - sysfs is read first. The RDMA MTU comes from C(ibv_devinfo), uses and the device's maximum from C(ip).
  - A tool that is missing, hangs or prints something else is an entry in RV(problems), and the values it would have
    given are null. The module does not fail for it.
  - On a checkout or install of the collection an action plugin of the same name runs on the controller. If the variable
    C(aidc_state_dir) is set, it stores the result there as C(mlx5_info/HOST.json), the fleet record, with the variable
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
record_file:
  description: Where the controller stored the result.
  returned: when the variable C(aidc_state_dir) is set
  type: str
  sample: /srv/inventory/.state/mlx5_info/gb200-1.json
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import argspec, io


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.info(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    module.exit_json(changed=False, **io.gather(machine).as_data(module.params["rails"]))


if __name__ == "__main__":
    main()
