# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A consistent fleet as the modules record it, of any size, for the tests of the audit and for its benchmark."""
from __future__ import annotations

import copy
import typing as t
from datetime import datetime, timezone

from plugins.module_utils._audit import expect
from plugins.module_utils._fleet import record
from plugins.module_utils._mlx5.model import rdma_mtu_bytes
from plugins.module_utils._roce.intent import default_ets, dscp_map

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
TIME = NOW.strftime(record.TIME_FORMAT)
Values = dict[str, t.Any]
Data = dict[str, t.Any]
COUNTERS = ("out_of_buffer", "out_of_sequence", "duplicate_request", "rnr_nak_retry_err", "packet_seq_err",
            "implied_nak_seq_err", "local_ack_timeout_err", "resp_local_length_error", "req_cqe_error",
            "req_remote_invalid_request", "req_remote_access_errors", "rp_cnp_ignored", "rp_cnp_handled",
            "np_ecn_marked_roce_packets", "np_cnp_sent", "roce_slow_restart", "rx_icrc_encapsulated")
COMMON: Values = {
    "mlx5_port_expected_rdma_mtu_bytes": 4096, "mlx5_port_mtu_bytes": 4200, "mlx5_port_persistent": True,
    "mlx5_port_admin_state": "unmanaged", "mlx5_port_global_pause": "disabled",
    "rail_network_arp_ignore": 1, "rail_network_arp_announce": 2, "rail_network_rp_filter": 2,
    "roce_qos_dscp": 26, "roce_qos_priority": 3, "roce_qos_cnp": {"dscp": 48, "priority": 6}, "roce_qos_lossless": True,
    "roce_qos_trust": "dscp", "roce_qos_ecn": True, "roce_qos_bandwidth_percent": 50, "roce_qos_dcbx_owner": "host",
    "fabric_switch_mtu_bytes": 9216, "fabric_switch_dscp": 26, "fabric_switch_priority": 3,
    "fabric_switch_lossless": True, "nccl_gate_environment": {"NCCL_IB_TC": "106"}, "nccl_gate_gpus_per_host": 4,
    "node_class_rail_link_layer": "Ethernet", "fabric_boot_mode": "apply",
}


class Class(t.NamedTuple):
    """A node class of the tests."""

    name: str
    rails: int
    gbps: float
    speed: float
    firmware: str
    trays: int = 0
    mtu: int = 4200
    network: int = 10

    def pci(self, rail: int) -> str:
        return f"{rail:04x}:03:00.0"

    def values(self, index: int) -> Values:
        rails = [{"rail": rail, "pci": self.pci(rail)} for rail in range(self.rails)]
        return {**copy.deepcopy(COMMON), "node_class_name": self.name, "node_class_nvlink_domain_trays": self.trays,
                "node_class_rail_speed_gbps": self.gbps, "node_class_rail_pcie_speed_gts": self.speed,
                "node_class_rail_pcie_width": 16, "mlx5_port_rails": rails, "rail_network_rails": rails,
                "mlx5_port_mtu_bytes": self.mtu, "rail_network_node_index": index}


GB200 = Class("gb200", 4, 400, 32.0, "28.43.2026", 18)
L40S = Class("l40s", 2, 200, 16.0, "22.36.1010", mtu=9000, network=20)
BIG = Class("big", 8, 400, 32.0, "28.43.2026")


def address(kind: Class, rail: int, index: int) -> str:
    number = index + 1
    return f"{kind.network}.{rail * 16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def subnet(kind: Class, rail: int) -> str:
    return f"{kind.network}.{rail * 16}.0.0/12"


def gids(address_text: str, mac: str, netdev: str) -> list[Data]:
    """The table in the usual order: v1 and v2 of the link-local address, then of the rail's."""
    local = f"fe80::{mac.replace(':', '')[:4]}:{mac.replace(':', '')[4:8]}:{mac.replace(':', '')[8:]}"
    found = []
    for place, (family, text) in enumerate((("ipv6", local), ("ipv4", address_text))):
        for version, kind in enumerate(("IB/RoCE v1", "RoCE v2")):
            found.append({"index": 2 * place + version, "gid": "0000:0000:0000:0000:0000:ffff:c633:6401", "type": kind,
                          "ndev": netdev, "family": family, "address": text})
    return found


def _qos() -> Data:
    return {"backend": "dcb", "dcbx": "host", "trust": "dscp", "dscp_map": dscp_map(26, 3, 48, 6),
            "ets": default_ets(3, 6, 50), "pfc": [3], "cable_length": 7,
            "buffer": {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "buffer_size": [130944, 130944, 0, 0, 0, 0, 0, 0]}}


def _device(kind: Class, rail: int, index: int) -> Data:
    mac = f"02:{kind.network:02x}:{rail:02x}:{index >> 16 & 255:02x}:{index >> 8 & 255:02x}:{index & 255:02x}"
    netdev, ip = f"rail{rail}", address(kind, rail, index)
    port = {
        "port": 1, "state": "ACTIVE", "phys_state": "LinkUp", "rate": f"{kind.gbps:g} Gb/sec (4X NDR)",
        "speed_gbps": kind.gbps, "link_layer": "Ethernet", "netdev": netdev, "admin_state": "up", "oper_state": "up",
        "mac": mac, "mtu_bytes": kind.mtu, "max_mtu_bytes": 9978, "rdma_mtu_bytes": rdma_mtu_bytes(kind.mtu),
        "gids": gids(ip, mac, netdev), "excluded": None, "role": "rail", "network_file": f"/etc/systemd/network/{rail}",
        "saved_mtu_bytes": kind.mtu, "saved_mtu_file": f"/etc/systemd/network/{rail}", "bond": None,
        "bond_mtu_bytes": None, "bond_members": [], "vlans": [], "counters": dict.fromkeys(COUNTERS, 0),
        "ecn": {"source": "ecn", "np_enabled": [True] * 8, "rp_enabled": [True] * 8, "cnp_dscp": 48, "cnp_priority": 6,
                "min_time_between_cnps": 4, "why": None},
        "qos": _qos(), "qos_why": None,
    }
    return {"pci": kind.pci(rail), "pci_id": "15b3:1021", "rail": rail, "numa_node": 0, "driver": "mlx5_core",
            "is_vf": False, "firmware_version": kind.firmware, "psid": "MT_0000000834",
            "rdma_device": f"mlx5_{rail}", "netdevs": [netdev], "netdev_details": [], "pf": None, "vfs": [],
            "pcie": {"current_speed_gts": kind.speed, "current_width": 16, "max_speed_gts": kind.speed,
                     "max_width": 16}, "ports": [port]}


def _fabric(kind: Class, index: int) -> Data:
    """What mlx5_info reads for the audit alone."""
    ports = {kind.pci(rail): {"dpu_mode": None, "global_pause": "off", "rdma_cm": {"tos": 104, "roce_mode": "v2"},
                              "traffic_class": 106} for rail in range(kind.rails)}
    netdevs = {f"rail{rail}": {
        "addresses": [f"{address(kind, rail, index)}/12"], "owners": ["systemd-networkd"], "volatile": None,
        "saved": {"mtu_bytes": kind.mtu, "addresses": [f"{address(kind, rail, index)}/12"], "ignore_carrier": True},
        "sysctls": {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}} for rail in range(kind.rails)}
    return {"ports": ports, "netdevs": netdevs, "rules": [], "routes": {}, "lldpad": False, "boot_unit": "enabled",
            "intent": {"present": True, "schema_version": 1, "problem": None}}


def _host_info(kind: Class, index: int) -> Data:
    return {"machine_id": f"{kind.name}{index:08x}",
            "lldp": [{"netdev": f"rail{rail}", "chassis": f"leaf-r{rail}", "chassis_id": None, "port": f"swp{index}"}
                     for rail in range(kind.rails)]}


def _nvconfig(kind: Class) -> Data:
    parameter = {"name": "LINK_TYPE_P1", "wanted": "ETH", "default": "IB(1)", "current": "ETH(2)", "next": "ETH",
                 "state": "set"}
    return {"devices": [{"pci": kind.pci(rail), "device_type": "ConnectX7", "parameters": [dict(parameter)],
                         "pending": []} for rail in range(kind.rails)]}


def records(kind: Class, index: int, peer: str, far: int) -> dict[str, Data]:
    """All records of a host by kind, as they are on disk."""
    ports = [{"pci": kind.pci(rail), "rdma_device": f"mlx5_{rail}", "index": 3, "type": "RoCE v2", "family": "ipv4",
              "address": address(kind, rail, index), "roce_mode": None} for rail in range(kind.rails)]
    qos = [{"pci": kind.pci(rail), **{key: value for key, value in _qos().items() if key != "backend"}, "cm_tos": 104,
            "traffic_class": 106, "cnp": {"dscp": 48, "priority": 6}} for rail in range(kind.rails)]
    paths = [{"interface": f"rail{rail}", "address": address(kind, rail, far), "size_bytes": kind.mtu, "peer": peer,
              "source": address(kind, rail, index), "peer_interface": f"rail{rail}", "rail": rail, "passed": True,
              "largest_bytes": kind.mtu, "reason": ""} for rail in range(kind.rails)]
    return {
        "mlx5_info": {"devices": [_device(kind, rail, index) for rail in range(kind.rails)], "problems": [],
                      "stack": {"backend": "inbox", "version": None}, "findings": [], "needs_root": [],
                      "fabric": _fabric(kind, index)},
        "host_info": _host_info(kind, index), "roce_qos": {"ports": qos, "findings": [], "unsupported": []},
        "roce_gid": {"ports": ports}, "mlx5_nvconfig": _nvconfig(kind), "path_probe": {"paths": paths, "too_small": 0},
        "fabric_boot": {"enabled": True, "drift": [], "drift_why": None},
    }


class Fleet:
    """``values`` are the variables of each host, ``records`` its records by kind; both may be changed."""

    def __init__(self, *groups: tuple[Class, int]) -> None:
        self.values: dict[str, Values] = {}
        self.records: dict[str, dict[str, Data]] = {}
        self.kinds: dict[str, tuple[Class, int]] = {}
        self.times: dict[str, str] = {}
        for kind, count in groups:
            for index in range(count):
                name, peer = f"{kind.name}-{index + 1:04}", f"{kind.name}-{(index + 1) % count + 1:04}"
                self.kinds[name] = (kind, index)
                self.values[name] = kind.values(index)
                self.records[name] = records(kind, index, peer, (index + 1) % count)

    def document(self) -> Data:
        """What the action plugin makes of the inventory."""
        policies: list[Data] = []
        known: dict[str, int] = {}
        hosts: Data = {}
        for name, values in self.values.items():
            kind, index = self.kinds[name]
            own = {key: value for key, value in values.items() if key != "rail_network_node_index"}
            number = known.setdefault(repr(own), len(policies))
            if number == len(policies):
                policies.append(expect.policy(own))
            planned = not expect.off(values.get("rail_network_mode"))
            hosts[name] = {
                "pool": expect.pool(values), "policy": number, "allow": values.get("fabric_audit_allow", []),
                "rails": {rail["pci"]: [f"{address(kind, rail['rail'], index)}/12", subnet(kind, rail["rail"]),
                                        values.get("routing", [])]
                          for rail in values.get("mlx5_port_rails", []) if planned}}
        return {"schema_version": expect.SCHEMA_VERSION, "policies": policies, "hosts": hosts}

    def full(self, name: str, kind: str) -> Data:
        return {"schema_version": 1, "kind": kind, "host": name, "time": self.times.get(name, TIME), "run_id": None,
                "data": self.records[name][kind]}
