#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: roce_gid
short_description: Finds the one GID of each RoCE port by version and address, and sets the RoCE mode of RDMA-CM
version_added: 0.1.0
description:
  - Finds for each listed port the one GID that has the wanted RoCE version and address family and lies in the wanted
    subnet. None or several is an error that lists what the table has.
  - The index of a GID is a result, never an input. The kernel gives slots out in the order of address events, so the
    same configuration may lead to another index after the next boot.
  - The kernel adds GIDs some time after the address. The module waits for O(wait_seconds).
  - Sets, if asked, the RoCE version that RDMA-CM uses by default, through configfs
    (C(/sys/kernel/config/rdma_cm/DEVICE/ports/N/default_roce_mode)), or with C(cma_roce_mode) of DOCA-OFED where
    there is no configfs. The value is read back. It is runtime state, which ends with the RDMA device
    (driver reload, reboot).
    NCCL does not use RDMA-CM and chooses its own GID.
  - The firmware parameter C(ROCE_CONTROL), with which RoCE is switched off as a whole, is not this module's.
  - On a checkout or install of the collection an action plugin of the same name runs on the controller. In the folder
    C(aidc_state_dir), by default C(.state) beside the inventory, it
    compares the result with that of the last run, RV(moved), and stores it as
    C(roce_gid/HOST.json), the fleet record.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details:
      - Everything but the writes is done, so C(changed), C(diff) and RV(commands) equal those of the run.
      - To read RDMA-CM's mode a folder must exist in configfs. If it does not, it is made and removed again, in
        check mode too; the values are not touched by that.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  ports:
    description: Ports to look at; each PCI address once.
    type: list
    elements: dict
    required: true
    suboptions:
      pci:
        description: PCI address of the function, with its domain.
        type: str
        required: true
      subnets:
        description: Subnets of this port's address, if they are not those of O(subnets).
        type: list
        elements: str
        default: []
  subnets:
    description:
      - Subnets of which one must hold the address.
      - Without any, every address counts but those that a host makes up for itself (169.254.0.0/16, fe80::/10).
    type: list
    elements: str
    default: []
  address_family:
    description: Family of the address.
    type: str
    choices: [ipv4, ipv6]
    default: ipv4
  roce_version:
    description: RoCE version of the GID. Version 1 cannot be routed.
    type: str
    choices: [v1, v2]
    default: v2
  roce_mode:
    description:
      - RoCE version that RDMA-CM uses by default on these ports. Left out, it is neither read nor set.
      - The kernel's own default is V(v2).
    type: str
    choices: [v1, v2]
  persistent:
    description:
      - Keep the options of this call in the host's intent, C(/etc/aidc/intent.json). After a boot or a reload of the
        driver the boot tool of M(aidc.gpu_cluster.fabric_boot) sets O(roce_mode) again, and tells missing GIDs.
      - The last call counts, with the ports that it lists. With V(false) the intent is left as it is.
    type: bool
    default: true
  missing:
    description:
      - V(fail) if a port without its GID is an error; V(report) if it has nulls in RV(ports) instead, without waiting.
      - V(report) is for a run in check mode on a node whose addresses are only predicted.
    type: str
    choices: [fail, report]
    default: fail
  wait_seconds:
    description: Longest time in seconds to wait for GIDs after a change of addresses.
    type: float
    default: 5.0
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - module: aidc.gpu_cluster.mlx5_port
  - name: roce_gid_mgmt.c of the Linux kernel
    description: How addresses become entries of the GID table.
    link: https://github.com/torvalds/linux/blob/master/drivers/infiniband/core/roce_gid_mgmt.c
  - name: configfs-rdma_cm
    description: The kernel's description of default_roce_mode.
    link: https://github.com/torvalds/linux/blob/master/Documentation/ABI/testing/configfs-rdma_cm
  - name: NCCL environment variables
    description: How NCCL chooses a GID by itself; NCCL_IB_GID_INDEX should be left unset.
    link: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
notes:
  - GIDs can be read by any user; O(roce_mode) and O(persistent) need root.
  - Slots of the table that are empty or belong to another network namespace answer EINVAL and are left out.
  - With O(roce_mode) or O(persistent), a lock on the host, C(/run/lock/aidc.lock), keeps two runs apart.
"""

EXAMPLES = r"""
- name: The RoCE v2 GID of two rails
  aidc.gpu_cluster.roce_gid:
    ports:
      - pci: "0000:03:00.0"
        subnets: [198.51.100.0/24]
      - pci: "0002:03:00.0"
        subnets: [203.0.113.0/24]
    persistent: false
  register: gids

- name: The same over IPv6, and RoCE v2 for RDMA-CM
  aidc.gpu_cluster.roce_gid:
    ports:
      - pci: "0000:03:00.0"
    subnets: ["2001:db8::/32"]
    address_family: ipv6
    roce_mode: v2
  become: true
"""

RETURN = r"""
before:
  description: RDMA-CM's modes as they were; null where O(roce_mode) was left out.
  returned: success
  type: list
  elements: dict
  contains: &state
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    roce_mode:
      description: V(v1) or V(v2).
      type: str
      sample: v1
after:
  description: The modes as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *state
commands:
  description: What was done, in check mode what would be done, in order. A write to configfs is V(write) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [write, /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode]
steps:
  description: The same steps with what they disturb.
  returned: success
  type: list
  elements: dict
  contains:
    command:
      description: As in RV(commands).
      type: list
      elements: str
      sample: [write, /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode]
    disruptive:
      description: V(none); only new connections use the value.
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: RDMA-CM mode is v1
    pci:
      description: PCI address of the port.
      type: str
      sample: "0000:03:00.0"
ports:
  description: Each port with its one GID, in the order of O(ports).
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    rdma_device:
      description: RDMA device, whatever its naming style.
      type: str
      sample: mlx5_0
    port:
      description: Port number of the RDMA device.
      type: int
      sample: 1
    netdev:
      description: Netdev that has the address; a VLAN or bond if the address is there.
      type: str
      sample: ens1f0np0
    gid:
      description: The GID as sysfs has it, null if it is missing and O(missing=report).
      type: str
      sample: 0000:0000:0000:0000:0000:ffff:c633:6401
    index:
      description: Its index at this moment. Do not put it into a configuration.
      type: int
      sample: 3
    type:
      description: V(IB/RoCE v1) or V(RoCE v2).
      type: str
      sample: RoCE v2
    family:
      description: V(ipv4) or V(ipv6).
      type: str
      sample: ipv4
    address:
      description: The address in its usual form.
      type: str
      sample: 198.51.100.1
    roce_mode:
      description: RDMA-CM's mode, null if it was not asked for.
      type: str
      sample: v2
    roce_mode_why:
      description: Why the mode could not be read, or null.
      type: str
      sample: null
moved:
  description: Ports whose GID or index is another than in the fleet record of the last run. Nothing is wrong with that.
  returned: when the action plugin ran; empty without a record
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    before:
      description: GID, index and netdev of the last run.
      type: dict
      sample: {gid: "0000:0000:0000:0000:0000:ffff:c633:6401", index: 3, netdev: ens1f0np0}
    now:
      description: The same now.
      type: dict
      sample: {gid: "0000:0000:0000:0000:0000:ffff:c633:6401", index: 5, netdev: ens1f0np0}
record_file:
  description: Where the controller stored the result.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/roce_gid/gb200-1.json
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: 0000:03:00.0 (mlx5_0)
    got:
      description: What was found.
      type: str
      sample: "none within 5 s; the table has: fe80::1 (RoCE v2, ens1f0np0, index 1)"
    wanted:
      description: What was wanted.
      type: str
      sample: one RoCE v2 GID of an ipv4 address in 198.51.100.0/24
    hint:
      description: What to do.
      type: str
      sample: has ens1f0np0 its address?
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.io import recorded


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.gid(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=max(1.0, float(module.params["tool_timeout_seconds"])))
    try:
        request = argspec.request(module.params)
        result = recorded(machine, "roce_gid", module.params, module.check_mode,
                          lambda machine: configure(machine, request, module.check_mode), {"pci": None})
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
