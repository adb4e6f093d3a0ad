# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Evidence of the way that the data went, from NCCL's INFO lines (facts nccl-gate 2.1).

A line is looked at only if its first word can mean something: a log holds a million of them.
"""
from __future__ import annotations

import re
import typing as t

from .model import Result

MAX_NAMES = 256

_USING_IB = re.compile(r"\[\d+\]([^\s:;]{1,64}):(\d{1,3})/(\w{1,16})")
_OOB = re.compile(r"OOB ([^\s:;]{1,64}):")
_NETDEV = re.compile(r"\[\d+\]([^\s:;<]{1,64}):")
_COMM = re.compile(r"rank (\d{1,7}) n[rR]anks (\d{1,7})(?: nNodes (\d{1,7}))?")
_GDR_HCA = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for HCA \d+ '([^']{1,64})'")
_ALGO = re.compile(r"Bytes -> Algo (\w{1,16}) proto (\w{1,16})")
_CLIQUE = re.compile(r"cliqueSize (\d{1,6})")
_SET = re.compile(r"(NCCL_[A-Z0-9_]{1,64}) set (?:by environment )?to (.{1,200})")
_USED = re.compile(r"GDR ([01])\b")


class TransportReader:
    def __init__(self, result: Result) -> None:
        self._transport = result.transport
        self._ran = result.ran
        self._readers: dict[str, t.Callable[[str], None]] = {
            "Channel": self._channel, "NET/IB": self._ib, "NET/Socket": self._socket, "NET/OFI": self._plugin,
            "NET/Plugin:": self._plugin, "NET/Plugin": self._plugin, "Using": self._using, "Bootstrap": self._bootstrap,
            "Bootstrap:": self._bootstrap, "comm": self._comm, "ncclCommInitRank": self._comm,
            "ncclCommInitRankConfig": self._comm, "NVLS": self._nvls, "MNNVL": self._mnnvl,
            "Connected": self._connected,
        }
        self._seen_via: dict[str, tuple[str, bool | None]] = {}

    def info(self, message: str) -> None:
        self._transport.info_lines += 1
        word, _space, _rest = message.partition(" ")
        reader = self._readers.get(word)
        if reader is not None:
            reader(message)
        elif " -> Algo " in message:
            self._algorithm(message)
        elif " set " in message and word[:5] == "NCCL_":
            self._variable(message)

    def _channel(self, message: str) -> None:
        """``Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA``"""
        via = message.rpartition(" via ")[2]
        known = self._seen_via.get(via)
        if known is None:
            if via == message or len(self._seen_via) >= MAX_NAMES:
                return
            known = self._seen_via[via] = self._read_via(via)
        kind, gdr = known
        transport = self._transport
        transport.channels += 1
        transport.via[kind] = transport.via.get(kind, 0) + 1
        if gdr is not None:
            transport.gdr_channels += gdr
            transport.host_memory_channels += not gdr
            self._count_network(kind[4:])

    @staticmethod
    def _read_via(via: str) -> tuple[str, bool | None]:
        parts = via.split(" ")[0][:128].split("/")
        if parts[0] != "NET" or len(parts) < 2:
            return "/".join(parts[:2]), None
        # Sockets have no GPUDirect at all: their channels are host memory as well.
        return f"NET/{parts[1]}", any(part.startswith("GDRDMA") for part in parts)

    def _count_network(self, name: str) -> None:
        networks = self._transport.networks
        if name in networks or len(networks) < MAX_NAMES:
            networks[name] = networks.get(name, 0) + 1

    def _ib(self, message: str) -> None:
        transport = self._transport
        if "No device found" in message:
            transport.no_ib_device = True
        elif "GPU Direct RDMA" in message:
            match = _GDR_HCA.search(message)
            if match and len(transport.gdr_hcas) < MAX_NAMES:
                transport.gdr_hcas[match[2]] = match[1] == "Enabled"
        elif "Using [" in message:
            for name, port, link in _USING_IB.findall(message):
                if len(transport.hcas) < MAX_NAMES:
                    transport.hcas[f"{name}:{port}"] = link
            transport.relaxed_ordering = "[RO]" in message
            match = _OOB.search(message)
            if match:
                transport.bootstrap = match[1]

    def _socket(self, message: str) -> None:
        if "Using [" in message:
            for name in _NETDEV.findall(message):
                if name not in self._transport.netdevs and len(self._transport.netdevs) < MAX_NAMES:
                    self._transport.netdevs.append(name)

    def _plugin(self, message: str) -> None:
        if not self._transport.plugin or "Selected" in message:
            self._transport.plugin = message[:200]

    def _using(self, message: str) -> None:
        """``Using network IB`` (``Using non-device net plugin version 0`` says nothing)."""
        words = message.split(" ", 3)
        if len(words) > 2 and words[1] == "network":
            self._count_network(words[2][:64])

    def _bootstrap(self, message: str) -> None:
        match = re.search(r"Using ([^\s:;<]{1,64}):", message)
        if match:
            self._transport.bootstrap = match[1]

    def _comm(self, message: str) -> None:
        match = _COMM.search(message)
        if match is None:
            return
        ran = self._ran
        ran.ranks_nccl = max(ran.ranks_nccl or 0, int(match[2]))
        if match[3]:
            ran.nodes = max(ran.nodes or 0, int(match[3]))
        if " MNNVL " in message:
            self._transport.mnnvl = message.rpartition(" MNNVL ")[2][:1] == "1"

    def _nvls(self, message: str) -> None:
        if "multicast support is" in message:
            available = "not available" not in message
            # One device without it is enough to lose it for all.
            self._transport.nvls = available if self._transport.nvls is None else available and self._transport.nvls

    def _mnnvl(self, message: str) -> None:
        match = _CLIQUE.search(message)
        if match:
            self._transport.clique_size = max(self._transport.clique_size or 0, int(match[1]))

    def _connected(self, message: str) -> None:
        match = _USED.search(message)
        if match:
            used = match[1] == "1"
            self._transport.gdr = used if self._transport.gdr is None else used and self._transport.gdr

    def _algorithm(self, message: str) -> None:
        match = _ALGO.search(message)
        algorithms = self._transport.algorithms
        if match and (match[1] in algorithms or len(algorithms) < MAX_NAMES):
            algorithms[match[1]] = algorithms.get(match[1], 0) + 1

    def _variable(self, message: str) -> None:
        match = _SET.match(message)
        if match and len(self._transport.environment) < MAX_NAMES:
            self._transport.environment[match[1]] = match[2].rstrip(".")
