# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Rules of the audit about QoS and firmware of a rail: data only, see `rules.py`."""
from __future__ import annotations

from .model import Rule

_QOS = "apply the role roce_qos to this host (playbooks/fabric.yml)"
# Who writes over the values explains why they differ.
_TAKEN = ("rail-missing", "link-layer", "rail-vf", "rail-dpu", "dcbx-owner")

QOS_RULES: tuple[Rule, ...] = (
    Rule("qos-unknown", "warning", "rail", ("qos_known", "is", True), "QoS could not be read", "the port's QoS",
         "look at qos_why in the record; is dcb or mlnx_qos installed?", "mlx5 4.4",
         when=(("want_trust", "some", None),), unless=("rail-missing", "link-layer", "rail-vf", "rail-dpu")),
    Rule("dcbx-owner", "error", "rail", ("dcbx", "is", "@want_dcbx"), "DCBX by {dcbx}", "DCBX by {want_dcbx}",
         f"{_QOS}; with firmware the switch's word wins over the host's", "mlx5 4.3, 4.6"),
    Rule("trust", "error", "rail", ("trust", "is", "@want_trust"), "trust {trust}", "{want_trust}", _QOS,
         "mlx5 4.3, 8.28", unless=_TAKEN),
    Rule("dscp-priority", "error", "rail", ("priority", "is", "@want_priority"),
         "DSCP {want_dscp} has priority {priority}", "priority {want_priority}", _QOS, "mlx5 4.1, 4.3",
         unless=(*_TAKEN, "trust")),
    Rule("cnp-priority", "error", "rail", ("cnp_priority", "is", "@want_cnp_priority"),
         "DSCP {want_cnp_dscp} of CNPs has priority {cnp_priority}", "priority {want_cnp_priority}", _QOS,
         "mlx5 4.1, 4.3", unless=(*_TAKEN, "trust")),
    Rule("dscp-map", "warning", "rail", ("dscp_other", "none", None), "{dscp_other} other DSCPs have another priority",
         "the driver's own map", f"{_QOS}; one written entry is not a map", "mlx5 0.4, 4.3", unless=(*_TAKEN, "trust")),
    Rule("tc-shared", "error", "rail", ("tc_shared", "is", False), "RoCE data and CNPs share a traffic class",
         "a traffic class for each", _QOS, "mlx5 4.1", unless=_TAKEN),
    Rule("ets", "warning", "rail", ("ets", "is", "@want_ets"), "ETS {ets}", "{want_ets}", _QOS, "mlx5 4.3, 4.8",
         unless=(*_TAKEN, "tc-shared")),
    Rule("pfc-priority", "error", "rail", ("pfc", "is", "@want_pfc"), "PFC on priorities {pfc}", "{want_pfc}",
         f"{_QOS}; the write toggles the link", "mlx5 4.1, 4.3", unless=_TAKEN),
    Rule("global-pause", "error", "rail", ("global_pause", "none", None), "global pause {global_pause}",
         "off where PFC is on", "mlx5_port_global_pause: disabled, and off on the switch", "mlx5 0.12, 4.7",
         when=(("want_lossless", "is", True),)),
    Rule("ecn-off", "error", "rail", ("ecn", "is", "@want_ecn"), "ECN {ecn} on the priority of RoCE", "{want_ecn}",
         _QOS, "mlx5 4.5"),
    Rule("cnp-class", "warning", "rail", ("cnp", "is", "@want_cnp"), "CNPs with DSCP, priority {cnp}", "{want_cnp}",
         _QOS, "mlx5 4.1, 4.5"),
    Rule("cm-tos", "error", "rail", ("cm_dscp", "is", "@want_cm_dscp"), "RDMA-CM sends with DSCP {cm_dscp}",
         "DSCP {want_cm_dscp}", _QOS, "mlx5 1.8, 4.1"),
    Rule("traffic-class", "error", "rail", ("verbs_dscp", "is", "@want_verbs_dscp"),
         "verbs send with DSCP {verbs_dscp}", "DSCP {want_verbs_dscp}", _QOS, "mlx5 1.5, 4.1"),
    Rule("nccl-tc", "error", "rail", ("want_nccl_dscp", "is", "@want_dscp"),
         "NCCL_IB_TC sends with DSCP {want_nccl_dscp}", "DSCP {want_dscp} (roce_qos_dscp)",
         "set NCCL_IB_TC to the DSCP times 4 in nccl_gate_environment", "mlx5 1.8, 3.4, 4.1"),
    Rule("nccl-tc-unset", "warning", "rail", ("marked", "is", True),
         "nothing marks NCCL's packets: they go with DSCP 0", "NCCL_IB_TC, or the traffic class of DOCA-OFED",
         "set NCCL_IB_TC to the DSCP times 4 in nccl_gate_environment", "mlx5 1.8, 3.4, 8.28",
         when=(("want_lossless", "is", True), ("want_nccl", "is", True)), unless=("nccl-tc", "traffic-class")),
    # -- Firmware
    Rule("firmware-old", "error", "rail", ("firmware", "at-least", "@firmware_min"), "firmware {firmware_text}",
         "at least {firmware_min_text}", "burn a firmware that the fleet has released", "DESIGN 6.11"),
    Rule("nvconfig-value", "error", "rail", ("nv_wrong", "none", None), "{nv_wrong} for the next boot",
         "what mlx5_nvconfig_parameters says", "apply the role mlx5_nvconfig", "mlx5 5.2", unless=("rail-missing",)),
    Rule("nvconfig-pending", "error", "rail", ("nv_pending", "none", None), "{nv_pending} written, not loaded",
         "loaded values", "a firmware reset or a power cycle loads them; on boards with BMC power a reboot does not",
         "mlx5 0.10, 5.5", unless=("rail-missing", "nvconfig-value")),
    Rule("nvconfig-unknown", "warning", "rail", ("nv_unknown", "none", None), "{nv_unknown}: unknown to the firmware",
         "known parameters", "take it out of mlx5_nvconfig_parameters for this card, or update the firmware",
         "mlx5 5.1", unless=("rail-missing",)),
)
