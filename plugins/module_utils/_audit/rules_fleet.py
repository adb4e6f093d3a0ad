# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Rules of the audit about a host, and about hosts against each other: data only, see `rules.py`.

Scope ``host`` is one host. ``uniform``: rails of one group (``check`` has the value and the group's key) must have the
same value; a minority is named, a split blames nobody. ``unique``: no two ports or hosts have the same value. ``path``:
what `path_probe` measured.
"""
from __future__ import annotations

from .model import Rule

_BOOT = "apply the role fabric_boot to this host"
_READ = "run playbooks/audit.yml with this host in its limit; is it down?"

HOST_RULES: tuple[Rule, ...] = (
    Rule("record-missing", "error", "host", ("record", "is", True), "no record", "a record of mlx5_info", _READ,
         "DESIGN 1"),
    Rule("record-old", "warning", "host", ("record_old", "none", None), "a record from {record_old}",
         "one of at most {want_max_age_hours:g} h (aidc_state_max_age_hours)", _READ, "DESIGN 1"),
    Rule("record-partial", "warning", "host", ("problems", "none", None), "{problems}", "all that was asked for",
         "look at problems in the record", "DESIGN 6.5", unless=("record-missing",)),
    Rule("lldpad", "error", "host", ("lldpad", "is", False), "lldpad runs", "no lldpad beside roce_qos",
         "roce_qos_take_over: true stops it; lldpd may stay", "mlx5 4.6, 8.24", when=(("want_qos", "is", True),)),
    Rule("rails-one-subnet", "error", "host", ("one_subnet", "none", None), "rails {one_subnet} in one subnet",
         "a subnet for each rail", "in one subnet the wrong port answers: correct addresses or cabling",
         "host 1.1, 1.2"),
    Rule("driver-stale", "warning", "host", ("driver_stale", "none", None), "{driver_stale}",
         "the loaded driver is the installed one", "reload the driver or reboot", "host 0.10, 2.3"),
    Rule("boot-missing", "error", "host", ("boot", "is", True), "no boot tool", "the boot tool of fabric_boot", _BOOT,
         "mlx5 4.8", when=(("want_boot", "is", True),), unless=("record-missing",)),
    Rule("boot-disabled", "error", "host", ("boot_enabled", "is", True), "the boot unit is {boot_state}", "enabled",
         _BOOT, "mlx5 4.8", when=(("want_boot", "is", True),)),
    Rule("boot-drift", "error", "host", ("boot_drift", "none", None), "{boot_drift}",
         "the state of /etc/aidc/intent.json", "start aidc-fabric.service, and look who changes it", "mlx5 4.8"),
    Rule("intent-unreadable", "error", "host", ("intent_unreadable", "none", None), "{intent_unreadable}",
         "an intent file that can be read", "apply playbooks/fabric.yml, which writes it again", "DESIGN 1"),
    Rule("intent-newer", "error", "host", ("intent_newer", "none", None), "intent file of schema {intent_newer}",
         "one that the boot tool knows", _BOOT, "DESIGN 1"),
)

FLEET_RULES: tuple[Rule, ...] = (
    Rule("address-duplicate", "error", "unique", ("addresses", "rail", None), "{value}", "one port for each address",
         "two hosts may have the same rail_network_node_index, or somebody set an address by hand", "host 1.1"),
    Rule("mac-duplicate", "error", "unique", ("mac", "rail", None), "MAC {value}", "one port for each MAC",
         "a card with a copied or default MAC: look at the firmware's base MAC", "mlx5 3.2"),
    Rule("machine-id-duplicate", "warning", "unique", ("machine_id", "host", None), "machine id {value}",
         "one host for each machine id", "hosts of one image: remove /etc/machine-id and run systemd-machine-id-setup",
         "machine-id(5)"),
    Rule("firmware-uneven", "warning", "uniform", ("firmware_text", "board", None), "firmware {value}", "{majority}",
         "bring the cards of a class to one firmware", "issue: firmware uniform per class"),
    Rule("driver-uneven", "warning", "uniform", ("driver", "host", None), "mlx5 driver {value}", "{majority}",
         "bring the hosts of a class to one driver", "host 2.3"),
    Rule("pcie-uneven", "warning", "uniform", ("pcie_text", "board", None), "PCIe {value}", "{majority}",
         "reseat the card; look at slot, riser and firmware", "mlx5 6.3", unless=("pcie-width", "pcie-speed")),
    Rule("mtu-uneven", "error", "uniform", ("want_mtu", "rail", None), "MTU {value} wanted by the inventory",
         "{majority}", "give all hosts of a pool the same mlx5_port_mtu_bytes",
         "mlx5 2.2 (NVIDIA/nccl#2135), host 1.7"),
    Rule("dscp-uneven", "error", "uniform", ("want_dscp", "pool", None), "DSCP {value} wanted by the inventory",
         "{majority}", "give all hosts of a pool the same roce_qos_dscp", "mlx5 4.1"),
    Rule("cabling-lldp", "error", "uniform", ("chassis", "subnet", None), "cabled to {value}",
         "{majority}, as the rail's subnet",
         "compare the cabling with the plan: the port is on another leaf than the others of its subnet", "host 1.1",
         unless=("cabling-told",)),
    Rule("path-mtu", "error", "path", ("largest", "at-least", "size"), "{largest} bytes pass unfragmented", "{size}",
         "both ends have their MTU: look at the switch ports between them", "mlx5 2.1, 2.2",
         unless=("mtu-running", "switch-mtu", "port-down", "address-missing", "address-swapped", "rail-missing")),
    Rule("path-dead", "error", "path", ("largest", "at-least", 1), "no packet passes", "{size} bytes",
         "cabling, VLAN, route, or the switch port", "mlx5 2.2, host 1.2",
         unless=("port-down", "address-missing", "address-swapped", "rail-missing", "route-missing", "link-layer",
                 "address-duplicate", "cabling-lldp", "rail-bond")),
    Rule("path-unmeasured", "note", "host", ("measured", "is", True), "no path was measured", "a record of path_probe",
         "run playbooks/audit.yml without fabric_audit_measure: false", "mlx5 2.2",
         when=(("want_neighbours", "is", True),), unless=("record-missing",)),
)
