# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the fleet record says of a rail and of a host, as flat values for the rules. Pure.

Values that differ from host to host on purpose (addresses, MACs) stand beside `Rail`, so that the rails of a fleet have
few different values, and a rule looks at each of them once.
"""
from __future__ import annotations

import typing as t


class Rail(t.NamedTuple):
    """None is: not known, or does not apply. A text that is not empty says what is wrong."""

    present: bool = True
    is_vf: bool | None = None
    dpu_mode: bool | None = None
    bond: str | None = None
    management: str | None = None
    shared: str | None = None
    link_layer: str | None = None
    state: str | None = None
    speed_gbps: float | None = None
    pcie_width: int | None = None
    pcie_speed_gts: float | None = None
    pcie_text: str | None = None
    mtu: int | None = None
    saves: bool = False
    saved_mtu: str | int | None = None
    rdma_mtu: int | None = None
    vlans_low: str | None = None
    has_address: bool | None = None
    other_rail: str | None = None
    routes_missing: int | None = None
    arp: str | None = None
    rp_filter: int | None = None
    owners: str | None = None
    volatile: str | None = None
    leaf: str | None = None
    keeps_carrier: bool | None = None
    gids_own: int | None = None
    gids_candidate: int | None = None
    gid_index: int | None = None
    gid_index_before: int | None = None
    cm_mode: str | None = None
    qos_known: bool | None = None
    dcbx: str | None = None
    trust: str | None = None
    priority: int | None = None
    cnp_priority: int | None = None
    dscp_other: int | None = None
    tc_shared: bool | None = None
    ets: str | None = None
    pfc: str | None = None
    global_pause: str | None = None
    ecn: str | None = None
    cnp: str | None = None
    cm_dscp: int | None = None
    verbs_dscp: int | None = None
    marked: bool | None = None
    firmware: tuple[int, ...] | None = None
    firmware_text: str | None = None
    firmware_min: tuple[int, ...] | None = None
    firmware_min_text: str | None = None
    nv_wrong: str | None = None
    nv_pending: str | None = None
    nv_unknown: str | None = None


class Place(t.NamedTuple):
    """A rail of a host with what is its own."""

    rail: int
    facts: Rail
    key: int
    netdev: str
    addresses: tuple[str, ...] = ()
    mac: str | None = None
    chassis: str | None = None
    subnet: str | None = None
    board: str = ""


class Path(t.NamedTuple):
    """One measured path. ``largest`` is what passed, 0 if nothing did."""

    rail: int
    peer: str
    size: int
    largest: int
    reason: str


class Host(t.NamedTuple):
    """``why`` says why there is no record."""

    record: bool = True
    why: str = ""
    record_old: str | None = None
    problems: str | None = None
    lldpad: bool | None = None
    one_subnet: str | None = None
    driver: str | None = None
    driver_stale: str | None = None
    machine_id: str | None = None
    boot: bool | None = None
    boot_enabled: bool | None = None
    boot_state: str | None = None
    boot_drift: str | None = None
    intent_unreadable: str | None = None
    intent_newer: int | None = None
    measured: bool = False
    places: tuple[Place, ...] = ()
    paths: tuple[Path, ...] = ()
