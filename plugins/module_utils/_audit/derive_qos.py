# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""QoS of one rail from its records: DSCP to priority to traffic class, PFC, and who marks packets. Pure and total."""
from __future__ import annotations

import typing as t

from .expect import Want, ets_text, pair_text, pfc_text

Data = t.Mapping[str, t.Any]
_NOTHING: Data = {}


def _map_fields(dscps: t.Sequence[int] | None, want: Want) -> dict[str, t.Any]:
    """The two classes are looked at by themselves; the other 62 entries as one number."""
    if not dscps or want.map is None or want.dscp is None or want.cnp_dscp is None:
        return {}
    found = {"priority": dscps[want.dscp], "cnp_priority": dscps[want.cnp_dscp]}
    if tuple(dscps) != want.map:
        own = (want.dscp, want.cnp_dscp)
        found["dscp_other"] = sum(have != must for dscp, (have, must) in enumerate(zip(dscps, want.map))
                                  if dscp not in own)
    return found


def _ets_fields(ets: Data | None, want: Want) -> dict[str, t.Any]:
    classes = (ets or _NOTHING).get("prio_tc")
    if not classes or want.priority is None or want.cnp_priority is None:
        return {}
    return {"ets": ets_text(ets), "tc_shared": classes[want.priority] == classes[want.cnp_priority]}


def _ecn_fields(port: Data, want: Want) -> dict[str, t.Any]:
    """Per priority with OFED; the inbox driver shows the class of CNPs only."""
    ecn = port.get("ecn") or _NOTHING
    found: dict[str, t.Any] = {"cnp": pair_text(ecn.get("cnp_dscp"), ecn.get("cnp_priority"))}
    notify, react = ecn.get("np_enabled"), ecn.get("rp_enabled")
    if notify and react and want.priority is not None:
        both = notify[want.priority], react[want.priority]
        if None not in both:
            found["ecn"] = "on" if all(both) else "off"
    return found


def _marks(own: Data, record: Data, want: Want) -> dict[str, t.Any]:
    """Compared are DSCPs, not bytes: 104 and 106 are the same [mlx5-roce 4.1]."""
    tos = (own.get("rdma_cm") or _NOTHING).get("tos", record.get("cm_tos"))
    verbs = own.get("traffic_class", record.get("traffic_class"))
    found: dict[str, t.Any] = {"cm_dscp": None if tos is None else tos >> 2,
                               "verbs_dscp": None if verbs is None else verbs >> 2}
    # Whether somebody marks is known once the port was asked: the inbox driver has no traffic class at all.
    if want.nccl and want.dscp is not None and ("traffic_class" in own or record):
        found["marked"] = want.nccl_dscp is not None or (verbs or 0) >> 2 == want.dscp or want.dscp == 0
    return found


def fields(port: Data, own: Data, record: Data, pause: str | None, want: Want) -> dict[str, t.Any]:
    """``own`` is what mlx5_info has read with `fabric`, and ``record``, the port in the record
    of roce_qos, stands in for what mlx5_info did not read."""
    if want.dcbx is None and want.trust is None and want.dscp is None:
        return {}
    qos: Data = port.get("qos") or record
    here = own.get("global_pause", pause)
    return {
        "qos_known": bool(qos), "dcbx": qos.get("dcbx"), "trust": qos.get("trust"), "pfc": pfc_text(qos.get("pfc")),
        "global_pause": None if here in (None, "off") else here,
        **_map_fields(qos.get("dscp_map"), want), **_ets_fields(qos.get("ets"), want), **_ecn_fields(port, want),
        **_marks(own, record, want),
    }
