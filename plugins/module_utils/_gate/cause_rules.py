# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Clues and what they mean: data only, one row each with its source; `cause.py` evaluates it.

A clue has a key ``KIND:NAME`` (``counter:out_of_sequence``, ``error:ib-retry``, ``transport:socket``). Error
lines that need no company are explained by their own row in `_nccl/error_rules`. In the sources "facts" is the
project's reference on this gate, "mlx5" the one on mlx5 hosts, "kernel" the kernel's mlx5 counters.rst.
"""
from __future__ import annotations

import typing as t

# certain: seen, not inferred. likely: the usual reason. hint: also happens on a sound machine.
Strength = t.Literal["certain", "likely", "hint"]

# Pause frames and marks are how a lossless fabric works: only a stream of them says something.
_STREAM = 1000


class CauseRule(t.NamedTuple):
    """``keys``: patterns, any of them fires the row. ``needs``: each must fit a clue of the same place;
    ``unless``: none may. ``when``: what the node class must say (None: nobody said)."""

    id: str
    keys: tuple[str, ...]
    strength: Strength
    cause: str
    action: str
    source: str
    least: int = 1
    when: tuple[tuple[str, tuple[bool | None, ...]], ...] = ()
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


_ENDS = "Compare both ends of this rail: cable, optics, switch port, error counters of the port."
_LINK = ("counter:link_down_events_phy", "counter:link_downed")
_RETRY = ("error:ib-retry", "error:ib-completion")
_DISCARDS = ("counter:rx_discards_phy", "counter:rx_prio?_discards", "counter:rx_prio?_buf_discard",
             "counter:rx_prio?_cong_discard", "counter:rx_out_of_buffer")
_TIMEOUTS = ("counter:local_ack_timeout_err", "counter:req_transport_retries_exceeded")

CAUSE_RULES: tuple[CauseRule, ...] = (
    # -- Links
    CauseRule("link-retry", (*_RETRY, *_LINK), "certain",
              "The link of this rail went down during the run, and NCCL's retries ran out.", _ENDS,
              "facts 2.2, kernel link_down_events_phy", needs=("counter:link_down*", "error:ib-[rc]*")),
    CauseRule("link-down", _LINK, "certain", "A link went down during the run.", _ENDS,
              "kernel link_down_events_phy; facts 2.2 (a flapping link fails even if the run ends)",
              unless=_RETRY),
    CauseRule("link-symbols", ("counter:rx_symbol_err_phy", "counter:symbol_error", "counter:rx_crc_errors_phy"),
              "likely", "Bits arrive broken: a bad cable, optic or connector.",
              "Clean and reseat, then replace; read mlxlink on both ends.", "kernel rx_symbol_err_phy"),
    CauseRule("icrc", ("counter:rx_icrc_encapsulated",), "likely", "RoCE packets arrive with a wrong checksum (ICRC).",
              "Look for a device on the way that rewrites packets, then for a bad link.",
              "mlx5 1.4, kernel rx_icrc_encapsulated"),
    # -- Loss
    CauseRule("loss-timeout", _TIMEOUTS, "likely", "Packets or acknowledgements were lost, or the peer died.",
              "Check link, route, VLAN and PFC of this rail on both ends and on the switch between.",
              "mlx5 1.4, facts 2.2"),
    CauseRule("loss-sequence", ("counter:packet_seq_err", "counter:implied_nak_seq_err"), "likely",
              "The peer reported missing packets: loss on the way.",
              "Check PFC and discards along the path of this rail.", "mlx5 1.4, facts 2.2"),
    CauseRule("loss-order", ("counter:out_of_sequence",), "likely", "Packets arrived out of order, where none should: "
              "loss on the way.", "Check PFC and discards along the path of this rail.", "mlx5 1.4",
              when=(("adaptive_routing", (False,)),)),
    CauseRule("order", ("counter:out_of_sequence",), "hint", "Packets arrived out of order: loss, or adaptive routing, "
              "where it is expected.", "Say in the node class whether the fabric uses adaptive_routing.", "mlx5 1.4",
              when=(("adaptive_routing", (None,)),)),
    CauseRule("discards-lossless", _DISCARDS, "likely", "The NIC dropped packets of a class that is to be lossless.",
              "Compare trust, DSCP map, PFC and buffers of host and switch; check the cable length set.",
              "mlx5 1.10, 4.3", when=(("pfc", (True,)),)),
    CauseRule("discards", _DISCARDS, "hint", "The NIC dropped packets for want of buffers.",
              "Without PFC this may be normal; compare with the other nodes.", "mlx5 1.10",
              when=(("pfc", (False, None)),)),
    CauseRule("slow-receiver", ("counter:rnr_nak_retry_err", "counter:req_rnr_retries_exceeded",
                                "counter:out_of_buffer"),
              "likely", "A receiver was not ready: its host is slow to post buffers.",
              "Check CPU binding and PCIe of the receiver; NCCL's proxy threads need cores.", "mlx5 1.4, facts 5.2"),
    # -- Pause and congestion
    CauseRule("pause-storm", ("counter:tx_pause_storm_*_events",), "certain",
              "The NIC stalled its link with pause frames: the host did not take its data.",
              "Check PCIe width and speed, MaxReadReq, ACS and IOMMU of this NIC.", "mlx5 1.10"),
    CauseRule("pause-sent", ("counter:tx_prio?_pause",), "likely",
              "This host slows its senders: it takes data more slowly than its link brings it.",
              "Check PCIe width and speed, MaxReadReq, ACS and IOMMU of this NIC; GPUDirect on the right GPU.",
              "mlx5 1.4, 1.10", _STREAM),
    CauseRule("pause-received", ("counter:rx_prio?_pause",), "hint",
              "The switch slows this host: congestion, or a slow receiver behind it.",
              "Look for the host that sends pause frames; compare the paths between the leaves.",
              "mlx5 1.4, 1.10", _STREAM, needs=("verdict:SLOW",)),
    CauseRule("pause-global", ("counter:rx_global_pause", "counter:tx_global_pause"), "likely",
              "Global pause is at work where the class wants PFC: it stops all traffic, not one priority.",
              "Switch global pause off on the port and on the switch.", "mlx5 1.10, 4.7",
              when=(("pfc", (True,)),)),
    CauseRule("congestion", ("counter:rp_cnp_handled", "counter:np_cnp_sent", "counter:np_ecn_marked_roce_packets"),
              "hint", "Congestion control slows the senders.",
              "Compare ECN marks of the nodes: one leaf only means uneven paths (ECMP); try more QPs per connection.",
              "mlx5 1.4, facts 2.2", _STREAM, needs=("verdict:SLOW",)),
    # -- Memory and GPUDirect
    CauseRule("remote-access", ("counter:req_remote_access_errors", "counter:resp_remote_access_errors",
                                "counter:req_remote_invalid_request", "counter:resp_local_length_error"), "likely",
              "RDMA was refused by the memory of an end.", "Check ACS, IOMMU, nvidia-peermem or dma-buf.",
              "mlx5 1.4, facts 2.2"),
    CauseRule("counter-reset", ("reset:*",), "likely", "A counter went backwards: driver, firmware or node was "
              "restarted during the run.", "Look into the kernel log of the node; then run the test again.",
              "mlx5 1.4 (counters live with the device)"),
    # -- The way of the data
    CauseRule("no-verbs", ("transport:no-ib-device",), "certain", "NCCL found no RDMA device and used sockets.",
              "Check NCCL_IB_HCA, the mlx5_ib module, and the container's RDMA device.",
              "facts 2.1, nccl#952, nccl#1519"),
    CauseRule("socket", ("transport:socket",), "certain", "Data went over sockets (NET/Socket), not RDMA (NET/IB).",
              "Check NCCL_NET, NCCL_IB_DISABLE, NCCL_IB_HCA and the RDMA devices of each node.", "facts 2.1, nccl#1519",
              when=(("rdma", (True, None)),), unless=("transport:no-ib-device",)),
    CauseRule("no-gdr", ("transport:no-gdr",), "certain", "Data went through host memory: the network channels show "
              "no GDRDMA, which the class wants.",
              "Load nvidia-peermem or use dma-buf; check ACS and NCCL_NET_GDR_LEVEL.", "facts 2.1, nccl#1537",
              when=(("gdr", (True,)),), unless=("transport:socket",)),
    CauseRule("hcas-missing", ("transport:hcas-missing",), "certain", "NCCL used fewer NICs than the class has.",
              "Check NCCL_IB_HCA and the port state of the NIC that is missing.", "facts 2.1, 0.7"),
    CauseRule("no-nvls", ("transport:no-nvls",), "likely", "NVLink SHARP is not available, which the class wants.",
              "Check nvidia-fabricmanager and IMEX; after a restart of the fabric manager reset the GPUs.",
              "facts 2.1, 2.2", when=(("nvls", (True,)),)),
    CauseRule("mnnvl-off", ("transport:mnnvl-off",), "likely", "NVLink between the nodes was off, so the NICs carried "
              "all.", "Check the IMEX domain and channel, and NCCL_MNNVL_ENABLE.", "facts 3.1, nccl#1801",
              when=(("mnnvl", (True,)),)),
    # -- What the search found
    CauseRule("rail", ("convicted:rail:*",), "likely", "One rail of the node is at fault: NIC, cable, optic or switch "
              "port.", "Run ib_write_bw on this rail with another node: slow too means NIC, cable or port, good means "
              "the GPU's PCIe path. Compare both ends of the link.", "facts 4.3, stage 4"),
    CauseRule("node-data", ("convicted:node:wrong",), "certain", "The node computes or carries wrong data.",
              "Drain it. Repeat on the node alone and with another NCCL before hardware is replaced.",
              "facts 4.4, nccl#2001"),
    CauseRule("node-dead", ("convicted:node:crash", "convicted:node:hang"), "likely", "Runs with this node end badly.",
              "Drain it; read the first error of its log and look for Xids.", "facts 4.4, 2.2"),
    CauseRule("node-slow", ("convicted:node:slow",), "likely", "The node is slow whatever the rail: PCIe, NUMA, ACS, "
              "clocks, or NVLink.", "Drain it; compare PCIe width and speed, ACS, IOMMU, BIOS and clocks with a good "
              "node.", "facts 3.1, 4.3"),
    CauseRule("node-unsteady", ("convicted:*:intermittent",), "likely", "It is slow at times: a link that flaps, heat, "
              "or congestion.", "Look at link events, thermal throttling and error counters over time.", "facts 4.4"),
    CauseRule("path-leaves", ("convicted:path:leaves",), "likely", "The path between two leaves is slow; the nodes are "
              "sound.", "Drain nobody. Check the uplinks and ECMP between these leaves.", "facts 4.3, nccl#325"),
    CauseRule("path-pair", ("convicted:path:pair",), "likely", "Only this pair is slow; both ends are good with "
              "others.", "Drain nobody. Look for a routing collision on the way; more QPs per connection may help.",
              "facts 4.3, nccl#325"),
    CauseRule("fleet", ("search:fleet-wide",), "likely", "The cause is common to all nodes: image, driver, MTU, switch "
              "or configuration.", "Drain nobody. Compare with the last good state; check MTU, PFC, IOMMU and NCCL's "
              "environment.", "facts 4.3"),
    CauseRule("scale", ("search:scale",), "likely", "Parts are good and the whole is slow: spine, incast or the "
              "algorithm chosen.", "Drain nobody. Check spine links and congestion; compare with NCCL_ALGO=RING.",
              "facts 4.3"),
)
