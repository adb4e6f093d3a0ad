# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Published bandwidths as data: what good machines reach. One source for each row; "facts" is nccl-gate.

Only rows that may stand as a reference are here. Figures that owners call good but that lie below 90 % of the
line rate (331 on 4 x 8 H100, 336 all_gather on 2 x 8 H200) would lower the limit for everybody: an operator who
accepts such a fabric states the number.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """``nics`` 0 and ``nic_gbit`` 0: not used, everything stays inside the NVLink domain."""

    gpu: str
    gpus_per_node: int
    nodes: tuple[int, int]
    busbw_gbps: float
    source: str
    collective: str = "all_reduce"
    algorithm: str = "default"
    nics: int = 0
    nic_gbit: float = 0
    transport: str = "rdma"
    mnnvl: bool = False


@dataclass(frozen=True)
class NvLink:
    """One way, GB/s for each GPU: on paper, and what a ring and NVLink SHARP reach on all GPUs of a node."""

    raw: float
    ring: float
    nvls: float | None
    source: str


# Facts 3.1; rings reach about 80 % of raw (nccl-tests#212, nccl#1442), NVLS counts as a ring and shows more.
NVLINK = {
    "A100": NvLink(300, 230, None, "superbench data 228-235; facts 3.2"),
    "H100": NvLink(450, 365, 480, "nccl-tests#272, nccl-tests#312; dgxc-benchmarking"),
    "H200": NvLink(450, 365, 475, "nccl-tests#272: 473-482; ring as H100"),
    "B200": NvLink(900, 678, 835, "nccl#1807 830-838; ring 673-682 (stas00)"),
    "GB200": NvLink(900, 680, 847, "GTC25 S72583: 680 ring; CoreWeave nccl-tests README 847"),
}

# PCIe 4.0 x16 has 31.5 GB/s each way; published L40S figures reach 40-50 (facts 3.1), so twice the link is the
# first value that cannot be true.
PCIE_UPPER = {"L40S": 63.0}

_ANY = 100_000
TABLE: tuple[Row, ...] = (
    Row("A100", 8, (1, 1), 230, "superbench data 228-235; Azure gate 228"),
    Row("A100", 8, (2, 2), 186, "gcm, DeepOps, OKE doc: 182-190", nics=8, nic_gbit=200),
    # With 8 NICs A100 stays on the ring at two nodes (nccl-tests#196), so it holds when the ring is forced.
    Row("A100", 8, (2, 2), 186, "gcm, DeepOps, OKE doc: 182-190", algorithm="ring", nics=8, nic_gbit=200),
    Row("A100", 8, (4, 16), 191.6, "DeepOps, OKE doc", nics=8, nic_gbit=200),
    Row("A100", 8, (4, 16), 191.6, "DeepOps, OKE doc", algorithm="ring", nics=8, nic_gbit=200),
    Row("V100", 8, (2, 2), 22.9, "DeepOps: DGX-1, 2 x 100G RoCE", nics=2, nic_gbit=100),
    Row("H100", 8, (1, 1), 480, "dgxc-benchmarking; nccl-tests#272"),
    Row("H100", 8, (1, 1), 365, "nccl-tests#312; nccl#1442", algorithm="ring"),
    # Tree or NVLSTree: up to twice the sum of the NICs, cut by NVLink. Never used when the ring is forced.
    Row("H100", 8, (2, 2), 471, "OCI 464-471, AWS 479-487: two-node tree", nics=8, nic_gbit=400),
    Row("H100", 8, (8, 16), 386, "CoreWeave, 64 H100", nics=8, nic_gbit=400),
    Row("H100", 8, (2, 2), 189, "GCP a3-mega doc", "all_gather", nics=8, nic_gbit=200, transport="tcpxo"),
    Row("H100", 8, (2, 2), 71, "GCP a3-high doc", "all_gather", nics=4, nic_gbit=200, transport="tcpx"),
    Row("H200", 8, (1, 1), 475, "nccl-tests#272: 473-482"),
    Row("H200", 8, (1, 1), 365, "as H100: 365 ring to 480 NVLS (facts 3.1)", algorithm="ring"),
    Row("H200", 8, (16, 16), 370, "AWS doc: p5en, 16 nodes", nics=16, nic_gbit=200, transport="efa"),
    Row("B200", 8, (1, 1), 835, "nccl#1807: 830-838"),
    Row("B200", 8, (1, 1), 678, "stas00: 673-682", algorithm="ring"),
    Row("B200", 8, (4, 4), 377, "AWS doc: B200, 8 EFA, 4 nodes", nics=8, nic_gbit=400, transport="efa"),
    Row("B300", 8, (2, 2), 751, "AWS doc: 16 EFA, at 64 GiB only", nics=16, nic_gbit=400, transport="efa"),
    # NVL72: 18 trays of 4 GPUs are one domain; trays of a part of it are judged by the ring.
    Row("GB200", 4, (18, 18), 847, "CoreWeave nccl-tests README: 72 GPUs", mnnvl=True),
    Row("GB200", 4, (18, 18), 680, "GTC25 S72583", algorithm="ring", mnnvl=True),
    Row("GB200", 4, (19, 36), 820, "CoreWeave: two racks", nics=4, nic_gbit=400, mnnvl=True),
    Row("GB200", 4, (37, _ANY), 406, "CoreWeave: 20 racks, the only larger figure", nics=4, nic_gbit=400, mnnvl=True),
)
