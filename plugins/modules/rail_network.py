#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rail_network
short_description: Gives rails their addresses, MTU and routes in the files of their own network manager
version_added: 0.1.0
description:
  - One call for all rails of a node. Ports are named by PCI address. The manager that owns each port is found out -
    systemd-networkd, netplan (with networkd) or NetworkManager - and one stanza with all that a rail needs goes into
    files of ours beside that manager's own ones.
  - systemd-networkd - a drop-in C(NAME.network.d/60-aidc-rail.conf) where a C(.network) file is for this port alone,
    else C(/etc/systemd/network/05-aidc-railN.network).
  - netplan - C(/etc/netplan/90-aidc-rails.yaml), on the id that the port has already. C(netplan generate) must accept
    it before anything is applied; then only networkd reloads, so that other ports are left alone.
  - NetworkManager - a profile C(aidc-railN) with a high priority for each rail, and C(conf.d/90-aidc-rails.conf) to
    ignore the carrier. Profiles of others are never changed.
  - The loss of the carrier is ignored. Else a write of PFC, which lets the link go for a moment, would cost the
    addresses and with them the GIDs.
  - With a gateway a rail gets a routing table and a rule of its own, and the route is proven with C(ip route get).
  - The ARP settings and the source check of each rail are set as effective values, now and in
    C(/etc/sysctl.d/90-aidc-rails.conf).
  - Everything is checked before the first write. Files that their owner refuses are put back. After the writes all
    values are read back. A run that was killed is completed by the next one.
  - A port is refused that carries a network file system or, without O(allow_management), the default route or the SSH
    connection, or is a member of a bridge, bond or Open vSwitch; so are virtual functions and ports that two managers
    own.
  - An address that nobody's file has is reported. If the owner would remove it, the call is refused.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
  - aidc.gpu_cluster.management
attributes:
  check_mode:
    support: full
    details: Everything but the writes is done, so C(changed), C(diff) and RV(commands) equal those of the run.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  rails:
    description: The rails of the node; each number and each PCI address once, each with a subnet of its own.
    type: list
    elements: dict
    required: true
    suboptions:
      rail:
        description: Number of the rail. It is part of the names of our files.
        type: int
        required: true
      pci:
        description: PCI address of the port, with its domain.
        type: str
        required: true
      address:
        description: Address of the port with the length of its subnet, IPv4 or IPv6.
        type: str
        required: true
      mtu_bytes:
        description: Netdev MTU in bytes, from 1280 to the device's maximum. An RDMA MTU of 4096 needs at least 4192.
        type: int
        default: 4200
      gateway:
        description: The leaf's address in the rail's subnet. Without one the rail has no table and no rule.
        type: str
      destinations:
        description: Networks behind the gateway. Without any, all that is not in the rail's subnet.
        type: list
        elements: str
        default: []
      table:
        description: Number of the rail's routing table; 101 and the rail's number by default.
        type: int
      priority:
        description: Priority of the rail's rule; 1001 and the rail's number by default.
        type: int
  owner:
    description:
      - Manager for ports that nobody manages. With V(auto) such a port is an error.
      - A port that another manager has already is an error.
    type: str
    choices: [auto, networkd, netplan, networkmanager]
    default: auto
  arp_ignore:
    description: Effective C(arp_ignore) of each rail. With V(1) a port answers for its own addresses only.
    type: int
    default: 1
  arp_announce:
    description: Effective C(arp_announce) of each rail. With V(2) a port asks with its own address only.
    type: int
    default: 2
  rp_filter:
    description: Effective C(rp_filter) of each rail. V(1), the strict check, loses packets where rails have rules.
    type: int
    default: 2
  disruption_policy:
    description:
      - What to do with a step that stops the link of a port while somebody uses the port or the node - a connection in
        C(rdma resource), a process with the RDMA device open, a step of Slurm, a process with a GPU, a mount over RDMA.
      - V(if_idle) leaves all rails alone for a later run and says so in RV(deferred), with each holder.
        V(force) goes on, V(never) never stops a link.
      - Open device files, cgroups and mounts are looked at without any tool. Where C(rdma) cannot tell,
        RV(rdma_users_known) is V(false), as connections of the kernel's own that are no mount are not seen then.
    type: str
    choices: [if_idle, force, never]
    default: if_idle
  persistent:
    description:
      - Keep the options of this call in the host's intent, C(/etc/aidc/intent.json). After a boot or a reload of the
        driver the boot tool of M(aidc.gpu_cluster.fabric_boot) sets the ARP settings again, and tells what a manager
        has not given back. The files of the managers are written in any case.
      - The last call counts, with the rails that it lists. With V(false) the intent is left as it is.
    type: bool
    default: true
  tool_timeout_seconds:
    description: Longest time in seconds that one question may take; less than 1 counts as 1. An owner has a minute.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_port
  - plugin: aidc.gpu_cluster.rail_plan
    plugin_type: filter
  - name: ip-sysctl
    description: ARP and source check of the Linux kernel.
    link: https://www.kernel.org/doc/html/latest/networking/ip-sysctl.html
  - name: systemd.network
    description: How C(.network) files and their drop-ins are found and merged.
    link: https://www.freedesktop.org/software/systemd/man/latest/systemd.network.html
  - name: netplan
    description: How files are merged.
    link: https://netplan.readthedocs.io/en/stable/netplan-yaml/
notes:
  - Needs root.
  - A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart; the error names the holder.
  - ifupdown, and netplan with the renderer NetworkManager, are not supported.
"""

EXAMPLES = r"""
- name: Two rails in one subnet each
  aidc.gpu_cluster.rail_network:
    rails:
      - rail: 0
        pci: "0000:41:00.0"
        address: 192.0.2.10/24
      - rail: 1
        pci: "0000:c1:00.0"
        address: 198.51.100.10/24
        mtu_bytes: 9000
  become: true

- name: A /31 to the leaf, and the other rails' networks behind it
  aidc.gpu_cluster.rail_network:
    rails:
      - rail: 0
        pci: "0000:03:00.0"
        address: 192.0.2.1/31
        gateway: 192.0.2.0
        destinations: [192.0.2.0/24]
    owner: networkd
  become: true
"""

RETURN = r"""
before:
  description: The rails as they were.
  returned: success
  type: list
  elements: dict
  contains: &state
    rail:
      description: Number of the rail.
      type: int
      sample: 0
    pci:
      description: PCI address.
      type: str
      sample: "0000:41:00.0"
    netdev:
      description: Netdev.
      type: str
      sample: ens1f0np0
    owner:
      description: V(networkd), V(netplan) or V(networkmanager).
      type: str
      sample: networkd
    running:
      description: Addresses, MTU, rules and routes, and the effective sysctls as they run.
      type: dict
      sample: {addresses: [192.0.2.10/24], mtu_bytes: 4200, up: true, rules: [], routes: [], arp_ignore: 1,
        arp_announce: 2, rp_filter: 2}
    saved:
      description: The same as the files on disk have it, for the next boot.
      type: dict
      sample: {addresses: [192.0.2.10/24], mtu_bytes: 4200, ignore_carrier: true, rules: [], routes: [], arp_ignore: 1,
        arp_announce: 2, rp_filter: 2}
after:
  description: The rails as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *state
commands:
  description:
    - What was done, in check mode what would be done, in order; one list per step.
    - A file operation is V(write) or V(remove) with the path, or V(set) with a path of procfs and the value.
  returned: always
  type: list
  elements: list
  sample:
    - [write, /run/aidc/rail-network.pending]
    - [write, /etc/systemd/network/20-ens1f0np0.network.d/60-aidc-rail.conf]
    - [networkctl, reload]
    - [remove, /run/aidc/rail-network.pending]
    - [set, /proc/sys/net/ipv4/conf/ens1f0np0/arp_ignore, "1"]
    - [write, /etc/sysctl.d/90-aidc-rails.conf]
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
      sample: [networkctl, reload]
    disruptive:
      description: V(none), or V(link) if traffic of the link stops for a moment.
      type: str
      sample: link
    why:
      description: The reason for the step.
      type: str
      sample: files changed
    netdevs:
      description: The rails that it is for.
      type: list
      elements: str
      sample: [ens1f0np0]
deferred:
  description: Rails in use, for whose sake nothing was done, with all steps that wait for their holders.
  returned: success
  type: list
  elements: dict
  contains:
    rail:
      description: Number of the rail.
      type: int
      sample: 0
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
      sample: [[networkctl, reload]]
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
rails:
  description: Each rail in detail; in check mode as it is before the steps.
  returned: success
  type: list
  elements: dict
  contains:
    rail:
      description: Number of the rail.
      type: int
      sample: 0
    pci:
      description: PCI address.
      type: str
      sample: "0000:41:00.0"
    netdev:
      description: Netdev.
      type: str
      sample: ens1f0np0
    address:
      description: The address asked for.
      type: str
      sample: 192.0.2.10/24
    carrier:
      description: Whether the link has a carrier. Without one all is configured just the same.
      type: bool
      sample: true
    foreign_addresses:
      description: Addresses that no file has.
      type: list
      elements: str
      sample: []
    dynamic_addresses:
      description: Addresses with a lifetime, from DHCP or router advertisements.
      type: list
      elements: str
      sample: []
    files:
      description: Our files for the rail.
      type: list
      elements: str
      sample: [/etc/systemd/network/20-ens1f0np0.network.d/60-aidc-rail.conf]
    route_to:
      description: The address with which the route was proven, null without a gateway.
      type: str
      sample: 192.0.2.254
    route_gateway:
      description: The gateway that the kernel takes to get there.
      type: str
      sample: 192.0.2.0
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: owner of ens1f0np0
    got:
      description: What was found.
      type: str
      sample: systemd-networkd and NetworkManager
    wanted:
      description: What was wanted.
      type: str
      sample: one manager
    hint:
      description: What to do.
      type: str
      sample: the last writer wins; take the port away from one of them
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.io import recorded
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.io import armed_request


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.rail_network(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        request = armed_request(argspec.request(module.params), module.params)
        result = recorded(machine, "rail_network", module.params, module.check_mode,
                          lambda machine: configure(machine, request, module.check_mode), {"netdevs": []})
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
