# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from plugins.module_utils._nccl.model import Result
from plugins.module_utils._nccl.transport import MAX_NAMES, TransportReader


def read(*messages: str) -> Result:
    result = Result()
    reader = TransportReader(result)
    for message in messages:
        reader.info(message)
    return result


def test_rdma() -> None:
    result = read(
        "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:192.0.2.1<0>", "Using network IB",
        "Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA", "Channel 01/0 : 8[0] -> 0[0] [send] via NET/IB/1",
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'",
        "Connected all rings, use ring PXN 1 GDR 1",
        "comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        "NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
        "NVLS multicast support is not available on dev 1",
        "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}",
        "NCCL_IB_HCA set by environment to mlx5.")
    transport = result.transport
    assert transport.hcas == {"mlx5_0:1": "RoCE", "mlx5_1:1": "IB"} and transport.relaxed_ordering
    assert (transport.bootstrap, transport.channels, transport.gdr_channels, transport.host_memory_channels) == ("eth0",
        4, 1, 1)
    assert transport.via == {"NET/IB": 2, "P2P/CUMEM": 1, "SHM/direct": 1}
    assert transport.gdr_hcas == {"mlx5_0": True, "mlx5_1": False} and transport.gdr is True
    assert (transport.nvls, transport.mnnvl, transport.algorithms) == (False, False, {"RING": 1})
    assert (result.ran.ranks_nccl, result.ran.nodes) == (16, 2)
    assert transport.environment == {"NCCL_IB_HCA": "mlx5"}


def test_socket_and_others() -> None:
    transport = read("NET/IB : No device found.", "NET/Socket : Using [0]eth0:192.0.2.1<0> [1]eth1:192.0.2.2<0>",
        "Using network Socket",
                     "Bootstrap : Using eth9:192.0.2.3<0>",
                     "NET/OFI Selected provider is efa, fabric is efa (found 32 nics)",
                     "MNNVL 1 cliqueId 1 cliqueSize 72 cliqueRank 3").transport
    assert transport.no_ib_device and transport.netdevs == ["eth0", "eth1"] and transport.networks == {"Socket": 1}
    assert transport.bootstrap == "eth9" and "efa" in transport.plugin and transport.clique_size == 72


def test_names_are_bounded() -> None:
    result = read(*(f"Channel 0 : 0 -> 1 via NET/x{number}" for number in range(5000)),
                  *(f"Using network n{number}" for number in range(5000)),
                  *(f"AllReduce: 1 Bytes -> Algo A{number} proto B" for number in range(5000)))
    assert len(result.transport.via) <= MAX_NAMES and len(result.transport.networks) <= MAX_NAMES
    assert len(result.transport.algorithms) <= MAX_NAMES
