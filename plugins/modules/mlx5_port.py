#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: mlx5_port
short_description: Sets MTU, rings, channels, pause, PCI read request and admin state of mlx5 RoCE ports
version_added: 0.1.0
description:
  - Sets the netdev MTU of all listed ports of a node in one call, at runtime with C(ip) and for the next boot with a
    drop-in for systemd-networkd, C(/etc/systemd/network/NAME.network.d/50-aidc-mtu.conf), where NAME.network is the
    file that governs the port.
  - A RoCE port has no MTU of its own. The kernel takes the netdev MTU less 96 bytes and uses the largest of 256, 512,
    1024, 2048 and 4096 that fits. The module checks that C(ibv_devinfo) shows that value.
  - Beside the MTU it sets admin state, rings, channels, pause and MaxReadReq, each only where it is given. What is
    not given is
    neither read nor touched. These are running values; they end with the driver or the boot.
  - A bond has one MTU. If all its members are listed, with the same O(ports[].mtu_bytes), the bond's is set, the
    members
    follow, and the saved value goes to the bond's file. VLANs on a listed port or its bond follow too, at runtime. A
    parent is
    raised before its VLANs and lowered after them.
  - Everything is checked before the first write, and an error then says that nothing was changed. After the writes all
    values are read back; a difference is a failure, as several tools report success without effect.
  - A port is refused that carries a network file system or, without O(allow_management), the default route or the SSH
    connection, or is a member of a bridge, of Open vSwitch, or of a bond whose members are not all listed.
  - Only drop-ins with the collection's header are rewritten. A run that was killed is completed by the next one.
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
  ports:
    description: Ports to set; each PCI address once.
    type: list
    elements: dict
    required: true
    suboptions:
      pci:
        description: PCI address of the function, with its domain.
        type: str
        required: true
      mtu_bytes:
        description:
          - Left out, the MTU is not touched.
          - Netdev MTU in bytes, from 352 (1280 if it is to be saved) to the device's maximum.
          - An RDMA MTU of 4096 needs at least 4192; V(4200) and V(9000) are usual.
        type: int
      rdma_mtu_bytes:
        description:
          - RDMA MTU in bytes that must follow from the netdev MTU. If it does not, the call fails before any write, and
            the error names the netdev MTU that is needed.
          - V(4096) needs a netdev MTU of at least 4192.
        type: int
        choices: [256, 512, 1024, 2048, 4096]
      admin_state:
        description: Whether the link is put up or down.
        type: str
        choices: [up, down]
      rx_ring_entries:
        description: Entries of each receive ring, a power of two from 64 to the device's maximum.
        type: int
      tx_ring_entries:
        description: Entries of each transmit ring, a power of two from 64 to the device's maximum.
        type: int
      channels:
        description: Combined channels, from 1 to the device's maximum.
        type: int
      pause_rx:
        description:
          - Whether the port obeys global pause frames (802.3x).
          - Set it and O(ports[].pause_tx) to V(false) where PFC is wanted; mlx5 has them on by default, and the
            driver does not
            keep the two apart. Autonegotiation of pause is never touched, as mlx5 refuses it.
        type: bool
      pause_tx:
        description: Whether the port sends global pause frames.
        type: bool
      max_read_request_bytes:
        description:
          - MaxReadReq of the PCI function in bytes. It is found through the list of PCI capabilities, not at a fixed
            offset.
          - V(4096) is usual for 200 Gb/s and more.
        type: int
        choices: [128, 256, 512, 1024, 2048, 4096]
  runtime:
    description: Set the running values. A link stops for a moment when its MTU, rings or channels change.
    type: bool
    default: true
  persistent:
    description:
      - Save the MTU for the next boot. Only systemd-networkd is supported as the owner of a port so far.
      - All options go into the host's intent, C(/etc/aidc/intent.json), from which the boot tool of
        M(aidc.gpu_cluster.fabric_boot) sets them again. With V(false) the intent is left as it is.
      - Without O(runtime) networkd is not told to reload, as that would set the running value too.
    type: bool
    default: true
  verify_rdma_mtu:
    description:
      - Compare the RDMA MTU that C(ibv_devinfo) shows with the one that follows from the netdev MTU.
      - If the tool is missing, hangs or prints something else, the call fails before any write.
    type: bool
    default: true
  disruption_policy:
    description:
      - What to do with a step that stops the link of a port while somebody uses the port or the node - a connection in
        C(rdma resource), a process with the RDMA device open, a step of Slurm, a process with a GPU, a mount over RDMA.
      - V(if_idle) leaves what changes the port for a later run and says so in RV(deferred), with each holder.
        V(force) goes on, V(never) never stops a link.
      - Open device files, cgroups and mounts are looked at without any tool. Where C(rdma) cannot tell,
        RV(rdma_users_known) is V(false), as connections of the kernel's own that are no mount are not seen then.
    type: str
    choices: [if_idle, force, never]
    default: if_idle
  info:
    description:
      - Given, even empty, the call also returns what M(aidc.gpu_cluster.mlx5_info) returns, read at its end, with the
        listed ports as rails in their order. A role that sets and verifies needs one call then.
      - On the controller it is stored in the fleet record as M(aidc.gpu_cluster.mlx5_info) stores it.
    type: dict
    suboptions:
      class:
        description: As O(aidc.gpu_cluster.mlx5_info#module:class).
        type: dict
        default: {}
        suboptions:
          pcie_speed_gts:
            description: Speed of the PCIe link in GT/s.
            type: float
          pcie_width:
            description: Lanes of the PCIe link.
            type: int
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - name: en_ethtool.c of the Linux kernel
    description: What mlx5 takes as rings, channels and pause.
    link: https://github.com/torvalds/linux/blob/master/drivers/net/ethernet/mellanox/mlx5/core/en_ethtool.c
  - name: systemd.network
    description: How C(.network) files and their drop-ins are found and merged.
    link: https://www.freedesktop.org/software/systemd/man/latest/systemd.network.html
  - name: ib_addr.h of the Linux kernel
    description: The function iboe_get_mtu derives the RDMA MTU.
    link: https://github.com/torvalds/linux/blob/master/include/rdma/ib_addr.h
notes:
  - Needs root. C(ethtool) is needed for rings, channels and pause only, C(setpci) (pciutils) for MaxReadReq only.
  - A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart; the error names the holder.
"""

EXAMPLES = r"""
- name: RDMA MTU 4096 on two rails, now and at boot
  aidc.gpu_cluster.mlx5_port:
    ports:
      - pci: "0000:03:00.0"
        mtu_bytes: 4200
      - pci: "0002:03:00.0"
        mtu_bytes: 4200
  become: true

- name: A rail for lossless RoCE - no global pause, large rings, all channels, MaxReadReq 4096
  aidc.gpu_cluster.mlx5_port:
    ports:
      - pci: "0000:03:00.0"
        mtu_bytes: 4200
        rdma_mtu_bytes: 4096
        admin_state: up
        rx_ring_entries: 8192
        tx_ring_entries: 8192
        channels: 63
        pause_rx: false
        pause_tx: false
        max_read_request_bytes: 4096
  become: true

- name: The running value only, where another network manager owns the port
  aidc.gpu_cluster.mlx5_port:
    ports:
      - pci: "0000:41:00.0"
        mtu_bytes: 9000
    persistent: false
  become: true
"""

RETURN = r"""
before:
  description: The ports as they were. Settings beside the MTU are there under the names of their options if they were
    given.
  returned: success
  type: list
  elements: dict
  contains: &state
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    mtu_bytes:
      description: Running MTU of the netdev in bytes.
      type: int
      sample: 4200
    saved_mtu_bytes:
      description: MTU that systemd-networkd sets at the next boot, null if none.
      type: int
      sample: 4200
after:
  description: The ports as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *state
commands:
  description:
    - What was done, in check mode what would be done, in order; one list per step.
    - A file operation is V(write) or V(remove) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [ip, link, set, dev, ens1f0np0, mtu, "4200"]
    - [write, /run/aidc/networkd-reload.pending]
    - [write, /etc/systemd/network/20-ens1f0np0.network.d/50-aidc-mtu.conf]
    - [networkctl, reload]
    - [remove, /run/aidc/networkd-reload.pending]
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
      sample: [ip, link, set, dev, ens1f0np0, mtu, "4200"]
    disruptive:
      description: V(none), or V(link) if traffic of the link stops for a moment.
      type: str
      sample: link
    why:
      description: The reason for the step.
      type: str
      sample: MTU is 1500
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
      sample: [[ip, link, set, dev, ens1f0np0, mtu, "4200"]]
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
ports:
  description: Each port in detail; in check mode as it is before the steps.
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    rdma_device:
      description: RDMA device.
      type: str
      sample: mlx5_0
    netdev:
      description: Netdev.
      type: str
      sample: ens1f0np0
    wanted_mtu_bytes:
      description: The value asked for.
      type: int
      sample: 4200
    mtu_bytes:
      description: Running MTU of the netdev in bytes.
      type: int
      sample: 4200
    saved_mtu_bytes:
      description: Saved MTU in bytes, null if none.
      type: int
      sample: 4200
    saved_mtu_file:
      description: File that decides the saved MTU.
      type: str
      sample: /etc/systemd/network/20-ens1f0np0.network.d/50-aidc-mtu.conf
    network_file:
      description: File of systemd-networkd that governs the netdev.
      type: str
      sample: /etc/systemd/network/20-ens1f0np0.network
    expected_rdma_mtu_bytes:
      description: RDMA MTU that follows from the wanted netdev MTU.
      type: int
      sample: 4096
    rdma_mtu_bytes:
      description: RDMA MTU that C(ibv_devinfo) shows, null if it was not seen.
      type: int
      sample: 4096
    bond:
      description: Bond that the netdev is a member of, or null.
      type: str
      sample: null
    vlans:
      description: VLANs on the netdev or its bond.
      type: list
      elements: str
      sample: [ens1f0np0.100]
    settings:
      description: The given settings as they are, by the names of their options.
      type: dict
      sample: {rx_ring_entries: 8192, pause_rx: false}
    maximums:
      description: The device's maximums of rings and channels that are given.
      type: dict
      sample: {rx_ring_entries: 8192}
excluded:
  description: Ports that are not listed and carry something else, so that they are no rails.
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0000:41:00.0"
    netdev:
      description: Netdev.
      type: str
      sample: ens3f0np0
    excluded:
      description: Why.
      type: str
      sample: carries the default route
info:
  description: What M(aidc.gpu_cluster.mlx5_info) returns.
  returned: success and O(info) is given
  type: dict
  sample: {devices: [], findings: [], problems: []}
record_file:
  description: Where the controller stored RV(info).
  returned: success, O(info) is given and there is a state directory
  type: str
  sample: /srv/inventories/prod/.state/mlx5_info/gb1.json
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: 0000:03:00.0 (ens1f0np0)
    got:
      description: What was found.
      type: str
      sample: MTU 9999
    wanted:
      description: What was wanted.
      type: str
      sample: at most 9978, the device's maximum
    hint:
      description: What to do.
      type: str
      sample: choose a smaller MTU
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.io import recorded
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.io import armed_request


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.port(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        info_class = argspec.node_class(module.params["info"]) if module.params["info"] is not None else None
        request = armed_request(argspec.request(module.params), module.params)
        result = recorded(machine, "mlx5_port", module.params, module.check_mode,
                          lambda machine: configure(machine, request, module.check_mode, info_class), {"pci": None})
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
