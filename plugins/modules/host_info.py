#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Reads what a host is, before anything is known of it
version_added: 0.1.0
description:
  - Reads in one call what tells the class of an unknown host and whether it can be worked with - distribution,
    processors, GPUs and NICs by PCI id, NVLink domain, drivers, network owners, routes, LLDP neighbours, clock, disks,
    names.
  - sysfs and files are read first. GPUs and NICs are seen without their drivers.
  - A tool that is missing gives null and a word in RV(why). One that hangs is ended, and is an entry in RV(problems).
    The module does not fail for either.
  - On a checkout or install of the collection an action plugin of the same name runs on the controller. If the variable
    C(aidc_state_dir) is set, it stores the result there as C(host_info/HOST.json), the fleet record.
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
  paths:
    description: Paths whose file systems are looked at.
    type: list
    elements: str
    default: [/, /boot, /var, /usr/src]
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - plugin: aidc.gpu_cluster.fleet_record
    plugin_type: lookup
notes:
  - No root is needed. LLDP neighbours and the serial number are for root on most systems, see RV(needs_root).
"""

EXAMPLES = r"""
- name: Read what the host is
  aidc.gpu_cluster.host_info:
  register: host

- name: The same as root, and slow tools get more time
  aidc.gpu_cluster.host_info:
    tool_timeout_seconds: 30
  become: true
  register: host

- name: Free space of one more file system
  aidc.gpu_cluster.host_info:
    paths: [/, /scratch]
  register: host
"""

RETURN = r"""
os:
  description: The distribution; null without os-release.
  returned: always
  type: dict
  contains:
    id:
      description: C(ID) of os-release.
      type: str
      sample: ubuntu
    version:
      description: C(VERSION_ID) as it stands there.
      type: str
      sample: "24.04"
    codename:
      description: C(VERSION_CODENAME).
      type: str
      sample: noble
    family:
      description: V(debian), V(redhat), V(suse) or null.
      type: str
      sample: debian
    name:
      description: C(PRETTY_NAME).
      type: str
      sample: Ubuntu 24.04.1 LTS
base_os:
  description: Release of DGX OS or BaseOS (C(/etc/dgx-release)); null on other systems.
  returned: always
  type: dict
  contains:
    version:
      description: The last over-the-air version, else that of the build.
      type: str
      sample: 7.5.0
    build:
      description: Version that it was installed with.
      type: str
      sample: 7.2.3
    name:
      description: Its name.
      type: str
      sample: NVIDIA DGX Server
    platform:
      description: The board.
      type: str
      sample: DGX Server for GB200
architecture:
  description: Architecture as C(uname -m) has it.
  returned: always
  type: str
  sample: aarch64
kernel:
  description: Release of the running kernel.
  returned: always
  type: str
  sample: 6.8.0-1024-nvidia-64k
python:
  description: The interpreter that ran the module.
  returned: always
  type: dict
  contains:
    version:
      description: Its version.
      type: str
      sample: 3.12.3
    executable:
      description: Its path.
      type: str
      sample: /usr/bin/python3.12
uid:
  description: User that the module ran as; 0 is root.
  returned: always
  type: int
  sample: 0
hostname:
  description: The name that the kernel has.
  returned: always
  type: str
  sample: gb200-1
machine_id:
  description: Content of C(/etc/machine-id).
  returned: always
  type: str
  sample: 4a1c3e0f5b7d49d2a8c6e1f203948576
dmi:
  description: What the firmware says of the machine; null where there is no DMI.
  returned: always
  type: dict
  contains:
    vendor:
      description: Vendor.
      type: str
      sample: NVIDIA
    product:
      description: Product.
      type: str
      sample: DGX GB200 Compute Tray
    board:
      description: Board.
      type: str
      sample: P3880
    serial:
      description: Serial number; for root only.
      type: str
      sample: "1800000000001"
cpu:
  description: Processors that are online.
  returned: always
  type: dict
  contains:
    model:
      description: Name of the first one.
      type: str
      sample: Neoverse-V2
    cores:
      description: Cores.
      type: int
      sample: 144
    threads:
      description: Threads.
      type: int
      sample: 144
    sockets:
      description: Sockets.
      type: int
      sample: 2
    numa_nodes:
      description: NUMA nodes that have processors.
      type: int
      sample: 2
memory:
  description: Main memory.
  returned: always
  type: dict
  contains:
    total_mib:
      description: MiB that the kernel has (C(MemTotal)); on GB200 with the GPUs' memory if that is NUMA nodes. Or null.
      type: int
      sample: 982400
gpus:
  description: GPUs of NVIDIA on the PCI bus, with a driver or without, in the order of their addresses.
  returned: always
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0008:01:00.0"
    pci_id:
      description: Vendor and device id.
      type: str
      sample: 10de:2941
    name:
      description: Name, or null if the id is not in our table.
      type: str
      sample: GB200
    numa_node:
      description: NUMA node, or null.
      type: int
      sample: 0
nics:
  description: Network functions of NVIDIA (Mellanox) on the PCI bus, with a driver or without.
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
    name:
      description: Name, or null if the id is not in our table.
      type: str
      sample: ConnectX-7
    kind:
      description: V(connectx), V(bluefield), V(virtual), V(flash_recovery) (a broken card) or V(other).
      type: str
      sample: connectx
    numa_node:
      description: NUMA node, or null.
      type: int
      sample: 0
    driver:
      description: Kernel driver, or null.
      type: str
      sample: mlx5_core
    is_vf:
      description: Whether it is a virtual function.
      type: bool
      sample: false
nvlink_domain:
  description: NVLink domain of the GPUs, equal on all hosts of a domain; null without one, RV(why) says why.
  returned: always
  type: dict
  contains:
    cluster_uuid:
      description: C(ClusterUUID) of C(nvidia-smi -q).
      type: str
      sample: 3f1b2c4d-0000-4000-8000-00000000000a
    clique_id:
      description: C(CliqueId).
      type: int
      sample: 1
drivers:
  description: Loaded drivers.
  returned: always
  type: dict
  contains:
    nvidia:
      description: The GPU driver; null if it is not loaded.
      type: dict
      contains:
        version:
          description: Its version.
          type: str
          sample: 580.126.09
        flavour:
          description: V(open), V(proprietary) or null.
          type: str
          sample: open
    mlx5:
      description: As RV(aidc.gpu_cluster.mlx5_info#module:stack).
      type: dict
      contains:
        backend:
          description: V(ofed), V(inbox) or null.
          type: str
          sample: inbox
        version:
          description: Version of the loaded module.
          type: str
          sample: 24.10-2.1.8
        installed:
          description: V(ofed), V(inbox) or null by the module on disk.
          type: str
          sample: inbox
        installed_version:
          description: Version of the module on disk.
          type: str
          sample: 24.10-2.1.8
        package:
          description: What C(ofed_info) names.
          type: str
          sample: OFED-internal-25.10-1.7.1
netdevs:
  description: All network devices but the loopback.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name.
      type: str
      sample: ens1f0np0
    up:
      description: Whether it is set up.
      type: bool
      sample: true
    carrier:
      description: Whether it has a carrier.
      type: bool
      sample: true
    mtu_bytes:
      description: MTU in bytes.
      type: int
      sample: 4200
    addresses:
      description: Global addresses with their lengths.
      type: list
      elements: str
      sample: [198.51.100.1/24]
    owner:
      description: V(networkd), V(netplan), V(networkmanager), or null for nobody or more than one.
      type: str
      sample: netplan
    why:
      description: What stands in the way of an owner, or null.
      type: str
      sample: null
default_routes:
  description: Default routes of the main table.
  returned: always
  type: list
  elements: dict
  contains:
    family:
      description: V(4) or V(6).
      type: int
      sample: 4
    route:
      description: Number of the route; several next hops of one route have the same.
      type: int
      sample: 0
    device:
      description: Netdev.
      type: str
      sample: eth0
    gateway:
      description: Gateway, or null.
      type: str
      sample: 192.0.2.254
    metric:
      description: Metric.
      type: int
      sample: 100
lldp:
  description: Neighbours; null without C(lldpcli) or without the right to ask it, RV(why) says which.
  returned: always
  type: list
  elements: dict
  contains:
    netdev:
      description: Our port.
      type: str
      sample: ens1f0np0
    chassis:
      description: Name of the switch, or null.
      type: str
      sample: leaf01-r0
    chassis_id:
      description: Its id.
      type: str
      sample: 02:00:00:00:01:01
    port:
      description: Its port.
      type: str
      sample: swp1s0
time:
  description: State of the clock, by C(chronyc), else by C(timedatectl).
  returned: always
  type: dict
  contains:
    source:
      description: V(chrony), V(timedatectl), or null if neither answers.
      type: str
      sample: chrony
    synchronised:
      description: Whether the clock is synchronised, or null.
      type: bool
      sample: true
    offset_seconds:
      description: Offset from the reference in seconds; null where it is not known.
      type: float
      sample: 0.000002968
    stratum:
      description: Stratum, or null.
      type: int
      sample: 3
names:
  description: What the name services say of the host.
  returned: always
  type: dict
  contains:
    addresses:
      description: Addresses of RV(hostname), none if it is unknown, null if nobody answers.
      type: list
      elements: str
      sample: [192.0.2.1]
    fqdn:
      description: Its canonical name.
      type: str
      sample: gb200-1.example.com
    reverse:
      description: Names of each of these addresses.
      type: dict
      sample: {192.0.2.1: [gb200-1.example.com, gb200-1]}
disks:
  description: File systems of O(paths); a path that is not there is left out.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: Path.
      type: str
      sample: /
    size_bytes:
      description: Size.
      type: int
      sample: 1000204886016
    free_bytes:
      description: Free for users other than root.
      type: int
      sample: 500102443008
    inodes:
      description: Inodes; 0 where the file system makes them as needed.
      type: int
      sample: 61054976
    free_inodes:
      description: Free ones.
      type: int
      sample: 60000000
findings:
  description: What is odd, whatever the class of the host is.
  returned: always
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: default route (IPv4)
    got:
      description: What was found.
      type: str
      sample: eth0 via 192.0.2.254; eth1 via 198.51.100.254
    wanted:
      description: What was wanted.
      type: str
      sample: one
    hint:
      description: What to do.
      type: str
      sample: a port with DHCP that should have none? take the gateway away from all but one
why:
  description: Why a value is null, by the name of the value.
  returned: always
  type: dict
  sample: {nvlink_domain: "nvidia-smi -q: the program is not installed"}
problems:
  description: What is there and could not be read.
  returned: always
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: nvidia-smi -q
    got:
      description: What was found.
      type: str
      sample: no answer within 10 s; ended by us
    wanted:
      description: What was wanted.
      type: str
      sample: its usual output
    hint:
      description: What to do.
      type: str
      sample: run it by hand
needs_root:
  description: What this user may not read.
  returned: always
  type: list
  elements: str
  sample: [lldp, /sys/class/dmi/id/product_serial]
record_file:
  description: Where the controller stored the result.
  returned: when the variable C(aidc_state_dir) is set
  type: str
  sample: /srv/inventory/.state/host_info/gb200-1.json
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import io


def main() -> None:
    spec = {"paths": {"type": "list", "elements": "str", "default": list(io.PATHS)},
            "tool_timeout_seconds": {"type": "int", "default": 10}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=max(1.0, float(module.params["tool_timeout_seconds"])))
    module.exit_json(changed=False, **io.read(machine, paths=module.params["paths"]))


if __name__ == "__main__":
    main()
