# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Rules of the audit about one rail, from the switch to NCCL: data only; `evaluate.py` is their one evaluator.

``check`` and ``when`` are (value, operator, wanted). A value is a field of `facts.Rail`, or ``want_...`` for what the
inventory says (`expect.Want`); a wanted text that starts with @ names such a value. What is not known is no finding:
a rule that compares with None on either side does not speak. ``unless`` names rules whose finding on the same rail
explains this one. ``got`` and ``wanted`` are formats over the same values.

Sources: "mlx5" and "host" are the project's references on mlx5 RoCE hosts and on host setup, with their section.
"""
from __future__ import annotations

from .model import Rule

_CLASS = "the node class (inventories/classes)"
_FABRIC = "apply playbooks/fabric.yml to this host"
_SWITCH = "compare the switch with the inventory; one of the two is wrong"

PORT_RULES: tuple[Rule, ...] = (
    # -- What the rail is
    Rule("rail-missing", "error", "rail", ("present", "is", True), "no mlx5 device at its PCI address",
         "the rail's port",
         "look at lspci -D and dmesg: a card that fell off the bus, or another slot than mlx5_port_rails says",
         "host 1.6, mlx5 6.2"),
    Rule("rail-vf", "error", "rail", ("is_vf", "is", False), "a virtual function", "a physical function",
         "name the physical function in mlx5_port_rails; a VF has no QoS of its own", "mlx5 3.7"),
    Rule("rail-dpu", "error", "rail", ("dpu_mode", "is", False),
         "a BlueField in DPU mode: its own processors hold the port", "NIC mode",
         "set INTERNAL_CPU_OFFLOAD_ENGINE to DISABLED, or set the port up on the DPU", "mlx5 5.1"),
    Rule("rail-bond", "error", "rail", ("bond", "none", None), "member of {bond}", "a port of its own",
         "take the port out of the bond; is the bond meant, allow it: fabric_audit_allow: [rail-bond]",
         "mlx5 3.6, 4.9"),
    Rule("rail-management", "error", "rail", ("management", "none", None), "{management}",
         "a port that is only a rail",
         "move that use to another port; is it meant, as on a host with one NIC, say so with allow_management",
         "host 1.6"),
    Rule("rail-shared", "warning", "rail", ("shared", "none", None), "{shared}", "a port that is only a rail",
         "move that use to another port", "host 1.6"),
    Rule("link-layer", "error", "rail", ("link_layer", "is", "@want_link_layer"), "link layer {link_layer}",
         "{want_link_layer}", "set LINK_TYPE_P1 with mlx5_nvconfig, then reset the firmware or power cycle",
         "mlx5 5.1, 8.34", unless=("rail-missing",)),
    Rule("port-down", "error", "rail", ("state", "is", "ACTIVE"), "port {state}", "ACTIVE",
         "compare both ends of the link: cable, optics, switch port, admin state", "mlx5 1.1",
         when=(("want_up", "is", True),), unless=("rail-missing", "link-layer")),
    Rule("port-speed", "error", "rail", ("speed_gbps", "at-least", "@want_speed_gbps"), "{speed_gbps:g} Gb/s",
         "{want_speed_gbps:g} Gb/s", f"look at cable, optics and the speed of the switch port, or correct {_CLASS}",
         "mlx5 1.1"),
    Rule("pcie-width", "error", "rail", ("pcie_width", "at-least", "@want_pcie_width"), "PCIe x{pcie_width}",
         "x{want_pcie_width}", "reseat the card; look at slot, riser and the firmware's bifurcation", "mlx5 6.3"),
    Rule("pcie-speed", "error", "rail", ("pcie_speed_gts", "at-least", "@want_pcie_speed_gts"),
         "PCIe {pcie_speed_gts:g} GT/s", "{want_pcie_speed_gts:g} GT/s",
         "look at slot, riser, and the link speed that the firmware sets", "mlx5 6.3"),
    # -- Switch side, as far as the inventory tells it
    Rule("switch-untold", "note", "rail", ("want_switch_told", "is", True),
         "nothing of the switch side in the inventory",
         "fabric_switch_mtu_bytes, fabric_switch_dscp, fabric_switch_priority",
         "say what the leaf switches have, so that both ends are compared", "mlx5 2.1, 4.1"),
    Rule("switch-mtu", "error", "rail", ("want_switch_mtu", "at-least", "@want_frame"), "switch MTU {want_switch_mtu}",
         "at least {want_frame}: MTU {want_mtu} and 22 bytes of Ethernet, tag and checksum",
         "raise the MTU of the leaf's ports; 9216 is usual", "mlx5 2.1"),
    Rule("switch-dscp", "error", "rail", ("want_switch_dscp", "is", "@want_dscp"),
         "switch takes DSCP {want_switch_dscp}", "DSCP {want_dscp} (roce_qos_dscp)", _SWITCH, "mlx5 4.1"),
    Rule("switch-priority", "error", "rail", ("want_switch_priority", "is", "@want_priority"),
         "switch has priority {want_switch_priority}", "priority {want_priority} (roce_qos_priority)", _SWITCH,
         "mlx5 4.1"),
    Rule("switch-lossless", "error", "rail", ("want_switch_lossless", "is", "@want_lossless"),
         "switch lossless: {want_switch_lossless}", "lossless: {want_lossless} (roce_qos_lossless)", _SWITCH,
         "mlx5 4.3: PFC on one end only loses packets"),
    # -- MTU
    Rule("mtu-running", "error", "rail", ("mtu", "is", "@want_mtu"), "netdev MTU {mtu}", "{want_mtu}", _FABRIC,
         "mlx5 2.1, 2.2", unless=("rail-missing", "link-layer")),
    Rule("mtu-saved", "error", "rail", ("saved_mtu", "is", "@want_mtu"), "saved MTU {saved_mtu}", "{want_mtu}",
         f"{_FABRIC}; the next boot would lose the MTU", "mlx5 2.4, 4.8", when=(("saves", "is", True),)),
    Rule("rdma-mtu", "error", "rail", ("rdma_mtu", "is", "@want_rdma_mtu"), "RDMA MTU {rdma_mtu}", "{want_rdma_mtu}",
         "RDMA MTU has no setting of its own: the netdev MTU decides, and the port must be up", "mlx5 2.1",
         unless=("rail-missing", "link-layer", "port-down", "mtu-running", "rail-bond")),
    Rule("vlan-mtu", "error", "rail", ("vlans_low", "none", None), "{vlans_low}", "the MTU of its parent",
         "raise the VLAN's MTU in the file of its manager; a parent's MTU does not reach it",
         "mlx5 2.1, 2.4 (linux-system-roles/network#19)"),
    # -- Address and route
    Rule("address-missing", "error", "rail", ("has_address", "is", True), "not on the port", "the planned address",
         "apply the role rail_network; a carrier loss may have cost the address", "host 1.5",
         unless=("rail-missing", "link-layer", "address-swapped", "rail-bond")),
    Rule("address-swapped", "error", "rail", ("other_rail", "none", None), "an address of rail {other_rail}",
         "an address of its own subnet", "two rails are exchanged: in the cabling, or in the host's files", "host 1.1"),
    Rule("route-missing", "error", "rail", ("routes_missing", "none", None),
         "{routes_missing} rules or routes missing", "the rail's rule and routes",
         "apply the role rail_network; without them the kernel takes the peer for a neighbour", "host 1.2",
         unless=("rail-missing", "address-missing", "address-swapped")),
    Rule("arp-flux", "error", "rail", ("arp", "is", "@want_arp"), "arp_ignore, arp_announce {arp}", "{want_arp}",
         "apply the role rail_network; the wrong port answers for this address", "host 1.2"),
    Rule("rp-filter", "error", "rail", ("rp_filter", "is", "@want_rp_filter"), "rp_filter {rp_filter}",
         "{want_rp_filter}", "apply the role rail_network; the larger of `all` and the port counts", "host 1.2"),
    Rule("owner-several", "error", "rail", ("owners", "none", None), "managed by {owners}", "one manager",
         "the last writer wins: take the port away from one of them", "host 1.4"),
    Rule("owner-volatile", "error", "rail", ("volatile", "none", None), "profile {volatile}", "a profile in /etc",
         "what is in /run is gone after a boot: save the profile, on netplan systems in netplan",
         "mlx5 2.4 (tonyd2wild#38), host 1.4"),
    Rule("carrier-loss", "error", "rail", ("keeps_carrier", "is", True),
         "its profile drops the address when the carrier goes", "a profile that ignores the carrier",
         "apply the role rail_network; a flap, even that of a PFC write, costs the GIDs", "host 0.1, 1.5"),
    Rule("cabling-told", "error", "rail", ("leaf", "is", "@want_leaf"), "cabled to {leaf}", "{want_leaf}",
         "compare the cabling with fabric_leaf_names", "host 1.1"),
    # -- GID
    Rule("gid-missing", "error", "rail", ("gids_own", "at-least", 1), "no RoCE v2 GID of the rail's address", "one",
         "is RoCE on for the device, and mlx5_ib loaded? apply the role roce_gid", "mlx5 3.2, 3.4",
         unless=("rail-missing", "link-layer", "address-missing", "address-swapped", "rail-bond")),
    Rule("gid-several", "error", "rail", ("gids_candidate", "at-most", 1),
         "{gids_candidate} RoCE v2 GIDs that NCCL may take", "one",
         "remove the address that is not the rail's, or set NCCL_IB_ADDR_RANGE", "mlx5 3.4",
         unless=("rail-missing", "address-swapped")),
    Rule("gid-pinned", "error", "rail", ("gid_index", "is", "@want_gid_index"), "the rail's GID has index {gid_index}",
         "{want_gid_index}, as NCCL_IB_GID_INDEX says",
         "leave NCCL_IB_GID_INDEX unset: an index is decided by history", "mlx5 0.3, 3.3"),
    Rule("gid-moved", "note", "rail", ("gid_index", "is", "@gid_index_before"), "GID index {gid_index}",
         "{gid_index_before}, as in the last run", "nothing, unless something has an index in its configuration",
         "mlx5 3.2"),
    Rule("rdma-cm-mode", "error", "rail", ("cm_mode", "is", "@want_cm_mode"), "RDMA-CM takes RoCE {cm_mode}",
         "{want_cm_mode}", "apply the role roce_gid; the mode is lost when the RDMA device is made again", "mlx5 1.8"),
)
