# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Counters of a port that say something about RoCE, as data. Each depends on the firmware and may be missing.

Sources: Linux drivers/infiniband/hw/mlx5/counters.c and Documentation/ABI/stable/sysfs-class-infiniband; rdma-core.
"""
from __future__ import annotations

# (folder below ports/N, name, what a rising value means)
COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("hw_counters", "out_of_sequence", "packets lost or reordered on the way here; expected with adaptive routing"),
    ("hw_counters", "packet_seq_err", "the peer saw packets lost or reordered"),
    ("hw_counters", "local_ack_timeout_err", "no answer: packets lost, or the peer is dead"),
    ("hw_counters", "rnr_nak_retry_err", "the receiver is slow"),
    ("hw_counters", "out_of_buffer", "no receive buffer was posted"),
    ("hw_counters", "req_transport_retries_exceeded", "connections that gave up"),
    ("hw_counters", "req_rnr_retries_exceeded", "connections that gave up on a slow receiver"),
    ("hw_counters", "np_ecn_marked_roce_packets", "packets that the switches marked as congested"),
    ("hw_counters", "np_cnp_sent", "notifications sent to the senders of marked packets"),
    ("hw_counters", "rp_cnp_handled", "this host is slowed by congestion control"),
    ("hw_counters", "rp_cnp_ignored", "notifications without effect: congestion control is off here"),
    ("hw_counters", "roce_adp_retrans", "adaptive retransmissions"),
    ("hw_counters", "roce_slow_restart", "slow restarts after a pause"),
    ("hw_counters", "rx_icrc_encapsulated", "packets with a broken checksum"),
    ("counters", "link_downed", "the link went down"),
    ("counters", "symbol_error", "bad symbols on the wire"),
    ("counters", "port_rcv_errors", "broken packets received"),
    ("counters", "port_xmit_discards", "packets dropped before sending"),
)
