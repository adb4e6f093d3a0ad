# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the inventory says that each rail is to be: one document for the fleet, made from variables, read back as data.

Most hosts of a class have the same variables, so the document has a few *policies*, and for each host the number of
its policy, its pool, and its rails with their addresses. Pure.
"""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError
from .._mlx5.model import rdma_mtu_bytes
from .._roce import intent

SCHEMA_VERSION = 1
# Ethernet header 14, VLAN tag 4, checksum 4: what a switch counts beside the netdev's MTU [mlx5-roce 2.1].
FRAME_BYTES = 22
_SYSCTLS = ("arp_ignore", "arp_announce", "rp_filter")
_QOS = {"dscp": 26, "priority": 3, "lossless": True, "trust": "dscp", "ecn": True, "bandwidth_percent": 50,
        "dcbx_owner": "host"}
ROLES = ("mlx5_port", "rail_network", "roce_qos", "roce_gid", "mlx5_nvconfig", "fabric_boot")
MANAGEMENT = tuple(f"{role}_allow_management" for role in ROLES)
# Variables that are looked at, of the roles, of the class and of the switch side.
NAMES = (
    *(f"{role}_mode" for role in ROLES), *MANAGEMENT, "mlx5_port_rails", "mlx5_port_mtu_bytes",
    "mlx5_port_expected_rdma_mtu_bytes", "mlx5_port_persistent", "mlx5_port_admin_state", "mlx5_port_global_pause",
    "rail_network_rails", "rail_network_subnets", "rail_network_node_index", "rail_network_leaf_end",
    "rail_network_mtu_bytes", *(f"rail_network_{key}" for key in _SYSCTLS), *(f"roce_qos_{key}" for key in _QOS),
    "roce_qos_rails", "roce_qos_cnp", "roce_qos_ets", "roce_qos_unmanaged_groups", "roce_gid_rails", "roce_gid_subnets",
    "roce_gid_address_family", "roce_gid_roce_version", "roce_gid_roce_mode", "node_class_name",
    "node_class_nvlink_domain_trays", "node_class_rail_speed_gbps", "node_class_rail_link_layer",
    "node_class_rail_pcie_speed_gts", "node_class_rail_pcie_width", "nccl_gate_environment", "nccl_gate_gpus_per_host",
    "fabric_name", "fabric_switch_mtu_bytes", "fabric_switch_dscp", "fabric_switch_priority", "fabric_switch_lossless",
    "fabric_leaf_names", "fabric_firmware_min", "fabric_audit_allow", "aidc_state_max_age_hours",
)


class ExpectError(Exception):
    """The document is not one of ours; the message says what."""


class Want(t.NamedTuple):
    """What one rail is to be; None where nobody says, or where it is not ours to say."""

    link_layer: str | None = None
    up: bool = True
    speed_gbps: float | None = None
    pcie_width: int | None = None
    pcie_speed_gts: float | None = None
    mtu: int | None = None
    rdma_mtu: int | None = None
    frame: int | None = None
    saved: bool = True
    switch_told: bool = False
    switch_mtu: int | None = None
    switch_dscp: int | None = None
    switch_priority: int | None = None
    switch_lossless: bool | None = None
    leaf: str | None = None
    arp: str | None = None
    rp_filter: int | None = None
    carrier: bool = False
    dcbx: str | None = None
    trust: str | None = None
    dscp: int | None = None
    priority: int | None = None
    map: tuple[int, ...] | None = None
    cnp_dscp: int | None = None
    cnp_priority: int | None = None
    ets: str | None = None
    pfc: str | None = None
    lossless: bool | None = None
    ecn: str | None = None
    cnp: str | None = None
    cm_dscp: int | None = None
    verbs_dscp: int | None = None
    family: str = "ipv4"
    version: str | None = "RoCE v2"
    subnets: tuple[str, ...] = ()
    cm_mode: str | None = None
    nccl: bool = False
    nccl_dscp: int | None = None
    nccl_family: str = "ipv4"
    nccl_range: str | None = None
    gid_index: int | None = None
    firmware_min: tuple[tuple[str, str], ...] = ()
    management: bool = False
    max_age_hours: float = 24.0
    boot: bool = False
    qos: bool = False


class RailWant(t.NamedTuple):
    """``key`` is equal for equal wants. ``routing`` are the rail's rules and routes as `_rail.model` writes them."""

    rail: int
    pci: str
    want: Want
    key: int
    address: str | None = None
    subnet: str | None = None
    routing: tuple[str, ...] = ()


class HostWant(t.NamedTuple):
    name: str
    pool: str
    rails: tuple[RailWant, ...]
    allow: frozenset[str]
    want: Want


# -- from variables ----------------------------------------------------------------------------------------------------


def off(mode: t.Any) -> bool:
    """An unquoted `off` in YAML is the boolean false."""
    return mode is False or mode == "off"


def pfc_text(priorities: t.Iterable[int] | None) -> str | None:
    return None if priorities is None else ",".join(map(str, sorted(priorities))) or "none"


def ets_text(ets: t.Mapping[str, t.Any] | None) -> str | None:
    if not ets:
        return None
    return " ".join(f"{name} {','.join(map(str, ets.get(key) or ()))}"
                    for name, key in (("tc", "prio_tc"), ("kind", "tc_tsa"), ("share", "tc_bw")))


def pair_text(one: t.Any, other: t.Any) -> str | None:
    return None if one is None or other is None else f"{one}, {other}"


def _number(value: t.Any) -> t.Any:
    """0 and "" say nothing."""
    return value or None


def _class(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    keys = {"link_layer": "link_layer", "speed_gbps": "speed_gbps", "pcie_width": "pcie_width",
            "pcie_speed_gts": "pcie_speed_gts"}
    return {key: _number(values.get(f"node_class_rail_{name}")) for key, name in keys.items()}


def _switch(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    found = {f"switch_{name}": values.get(f"fabric_switch_{name}") for name in ("dscp", "priority", "lossless")}
    found["switch_mtu"] = _number(values.get("fabric_switch_mtu_bytes"))
    found["switch_told"] = any(value is not None for value in found.values())
    return found


def _qos(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The state that roce_qos would reach, by its own code."""
    if off(values.get("roce_qos_mode")):
        return {}
    rails = values.get("roce_qos_rails") or values.get("mlx5_port_rails") or ()
    found: dict[str, t.Any] = {}
    names = (*_QOS, "cnp", "ets", "unmanaged_groups")
    given = {name: values.get(f"roce_qos_{name}") for name in names}
    common = {**{name: default if given[name] is None else given[name] for name, default in _QOS.items()},
              "cnp": given["cnp"], "ets": given["ets"] or None, "unmanaged_groups": given["unmanaged_groups"] or [],
              "buffer": None, "cable_length_metres": None, "require_groups": [], "backend": "auto", "take_over": False,
              # How a state is reached is no part of it.
              "disruption_policy": "if_idle", "allow_management": False}
    for rail in rails:
        own = {name: value for name, value in rail.items() if name in intent.OPTIONS or name == "cnp"}
        request, problems = intent.request({**common, "ports": [{"pci": str(rail["pci"]), **own}]})
        if problems:
            raise AidcError(problems)
        merged = {**common, **own}
        found[str(rail["pci"]).strip().lower()] = _qos_want(request.wants[0].state, merged)
    return found


def _qos_want(state: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    cnp = {"dscp": intent.CNP_DSCP, "priority": intent.CNP_PRIORITY, **{
        key: value for key, value in (options["cnp"] or {}).items() if value is not None}}
    dscps, ecn = state.get("dscp_map"), state.get("ecn")
    return {
        "dcbx": state.get("dcbx"), "trust": state.get("trust"), "dscp": options["dscp"], "cnp_dscp": cnp["dscp"],
        "lossless": bool(options["lossless"]), "map": tuple(dscps) if dscps else None,
        "priority": options["priority"], "cnp_priority": cnp["priority"], "ets": ets_text(state.get("ets")),
        "pfc": pfc_text(state.get("pfc")), "ecn": f"{'on' if ecn['np'] else 'off'}" if ecn else None,
        "cnp": pair_text(cnp["dscp"], cnp["priority"]) if "cnp" in state else None,
        "cm_dscp": state["cm_tos"] >> 2 if "cm_tos" in state else None,
        "verbs_dscp": state["traffic_class"] >> 2 if "traffic_class" in state else None,
    }


def _integer(value: t.Any) -> int | None:
    try:
        return int(str(value), 0)
    except ValueError:
        return None


def _nccl(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    environment = values.get("nccl_gate_environment") or {}
    traffic_class, index = (_integer(environment.get(f"NCCL_IB_{name}", "")) for name in ("TC", "GID_INDEX"))
    family = environment.get("NCCL_IB_ADDR_FAMILY", "AF_INET")
    return {"nccl": bool(values.get("nccl_gate_gpus_per_host")), "nccl_range": environment.get("NCCL_IB_ADDR_RANGE"),
            "nccl_dscp": None if traffic_class is None or traffic_class < 0 else traffic_class >> 2,
            "nccl_family": "ipv6" if family == "AF_INET6" else "ipv4",
            "gid_index": None if index is None or index < 0 else index}


def _gid(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    if off(values.get("roce_gid_mode")):
        return {"version": None}
    mode = values.get("roce_gid_roce_mode")
    return {"version": "IB/RoCE v1" if values.get("roce_gid_roce_version") == "v1" else "RoCE v2",
            "family": values.get("roce_gid_address_family") or "ipv4",
            "cm_mode": mode if mode in ("v1", "v2") else None,
            "subnets": tuple(values.get("roce_gid_subnets") or ())}


def _network(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What is saved and how the kernel answers is ours only where rail_network runs."""
    if off(values.get("rail_network_mode")) or not values.get("rail_network_rails"):
        return {"saved": bool(values.get("mlx5_port_persistent", True)) and not off(values.get("mlx5_port_mode"))}
    ignore, announce, rp_filter = (values.get(f"rail_network_{key}") for key in _SYSCTLS)
    return {"arp": pair_text(ignore, announce), "rp_filter": rp_filter, "carrier": True}


def _common(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    firmware = values.get("fabric_firmware_min") or {}
    return {**_class(values), **_switch(values), **_gid(values), **_nccl(values), **_network(values),
            "up": values.get("mlx5_port_admin_state") != "down", "qos": not off(values.get("roce_qos_mode")),
            "firmware_min": tuple(sorted((str(key), str(value)) for key, value in firmware.items())),
            "management": any(values.get(name) is True for name in MANAGEMENT),
            "max_age_hours": float(values.get("aidc_state_max_age_hours") or 24),
            "boot": values.get("fabric_boot_mode") is not None and not off(values.get("fabric_boot_mode"))}


def policy(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """``common`` and ``rails`` (by PCI address) as fields of Want that are not their defaults."""
    qos = _qos(values)
    mtu = values.get("rail_network_mtu_bytes") or values.get("mlx5_port_mtu_bytes") or 4200
    rdma = values.get("mlx5_port_expected_rdma_mtu_bytes")
    names, settled = values.get("fabric_leaf_names") or (), off(values.get("mlx5_port_mode")) \
        and off(values.get("rail_network_mode"))
    rails = {}
    for entry in values.get("mlx5_port_rails") or ():
        pci, number = str(entry["pci"]).strip().lower(), entry["rail"]
        own = None if settled else entry.get("mtu_bytes", mtu)
        rails[pci] = {"rail": number, **qos.get(pci, {}), "mtu": own, "frame": own and own + FRAME_BYTES,
                      "rdma_mtu": None if own is None else rdma or rdma_mtu_bytes(own),
                      "leaf": names[number] if number < len(names) else None}
    return {"common": _common(values), "rails": rails}


def pool(values: t.Mapping[str, t.Any]) -> str:
    """Node class x NVLink domain policy x fabric [DESIGN 1]."""
    trays = values.get("node_class_nvlink_domain_trays") or 0
    parts = (values.get("node_class_name") or "unclassed", f"nvlink{trays}" if trays > 1 else "",
             values.get("fabric_name"))
    return "/".join(str(part) for part in parts if part)


# -- the document ------------------------------------------------------------------------------------------------------


def _want(fields: t.Mapping[str, t.Any]) -> Want:
    lists = {key: tuple(map(tuple, value) if key == "firmware_min" else value) for key, value in fields.items()
             if isinstance(value, list)}
    return Want(**{**fields, **lists})


def load(document: t.Any) -> list[HostWant]:
    """Raises ExpectError for what is no document of ours."""
    if not isinstance(document, t.Mapping) or document.get("schema_version") != SCHEMA_VERSION:
        got = document.get("schema_version") if isinstance(document, t.Mapping) else type(document).__name__
        raise ExpectError(f"expectations: got schema {got}, wanted {SCHEMA_VERSION}")
    try:
        return _load(document)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise ExpectError(f"expectations: {type(error).__name__}: {error}") from error


def _load(document: t.Mapping[str, t.Any]) -> list[HostWant]:
    commons = [_want(entry["common"]) for entry in document["policies"]]
    wants: list[dict[str, tuple[int, Want, int]]] = []
    keys: dict[Want, int] = {}
    for entry, common in zip(document["policies"], commons):
        rails = {}
        for pci, fields in entry["rails"].items():
            fields = dict(fields)
            number = fields.pop("rail")
            want = _want({**common._asdict(), **fields})
            rails[pci] = (number, want, keys.setdefault(want, len(keys)))
        wants.append(rails)
    found = []
    for name, host in document["hosts"].items():
        places = host.get("rails") or {}
        own = []
        for pci, (number, want, key) in wants[host["policy"]].items():
            address, subnet, routing = places.get(pci) or (None, None, ())
            own.append(RailWant(number, pci, want, key, address, subnet, tuple(routing)))
        found.append(HostWant(name, host["pool"], tuple(own), frozenset(host.get("allow") or ()),
                              commons[host["policy"]]))
    return found
