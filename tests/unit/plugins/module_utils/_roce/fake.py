# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The QoS of a node's ports, and both tools as functions over it, in the layouts that were read in their sources."""
from __future__ import annotations

import copy
import errno
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import files

from tests.unit.plugins.fake import FakeNode, ok

PCI, NETDEV, RDMA = "0000:03:00.0", "rail0", "mlx5_0"
PCIS = ("0000:03:00.0", "0002:03:00.0")
FRESH: dict[str, t.Any] = {
    "host": True, "app": {}, "pfc": [False] * 8, "delay": 7, "prio_tc": [1, 0, 2, 3, 4, 5, 6, 7],
    "tc_tsa": ["vendor"] * 8, "tc_bw": [100] * 8, "prio_buffer": [1] * 8, "buffer_size": [0, 187200, 0, 0, 0, 0, 0, 0],
}
TOTAL = 2044224


class Qos:
    """Puts itself behind the tools of a fake node. ``refuse`` names commands that exit 0 without effect."""

    def __init__(self, node: FakeNode, monkeypatch: pytest.MonkeyPatch, ofed: bool = False) -> None:
        self.node = node
        monkeypatch.setattr(files, "write", self.write)
        self.ports = {rail.netdev: copy.deepcopy(FRESH) for rail in node.rails}
        self.refuse: set[str] = set()
        self.lldpad = "inactive"
        self.pause = "off"
        node.put("/usr/sbin/dcb", "")
        for rail in node.rails:
            node.put(f"/sys/class/net/{rail.netdev}/carrier", "1\n")
            node.put(f"/sys/kernel/config/rdma_cm/{rail.rdma}/ports/1/default_roce_tos", "0\n")
            for name, value in (("np_cnp_dscp", 48), ("np_cnp_prio", 6), ("np_cnp_prio_mode", 0)):
                node.put(f"/sys/kernel/debug/mlx5/{rail.pci}/cc_params/{name}", f"{value}\n")
            if ofed:
                self._ofed(rail.netdev, rail.rdma)
        node.override[("dcb",)] = self.dcb
        node.override[("mlnx_qos",)] = self.mlnx_qos
        node.override[("systemctl", "is-active", "lldpad.service")] = lambda call: Result(
            (), "ok" if self.lldpad == "active" else "failed", 0 if self.lldpad == "active" else 3, f"{self.lldpad}\n")
        node.override[("systemctl", "disable", "--now", "lldpad.service")] = self._stop
        node.override[("ethtool", "-a")] = lambda call: ok(
            f"Pause parameters for {call[2]}:\nAutonegotiate:\toff\nRX:\t\t{self.pause}\nTX:\t\t{self.pause}\n")

    def _ofed(self, netdev: str, rdma: str) -> None:
        self.node.put("/usr/bin/mlnx_qos", "")
        self.node.put(f"/sys/class/infiniband/{rdma}/tc/1/traffic_class", "")
        for name, value in (("cnp_dscp", 48), ("cnp_802p_prio", 6)):
            self.node.put(f"/sys/class/net/{netdev}/ecn/roce_np/{name}", f"{value}\n")
        for side in ("np", "rp"):
            for priority in range(8):
                self.node.put(f"/sys/class/net/{netdev}/ecn/roce_{side}/enable/{priority}", "1\n")

    def _stop(self, call: tuple[str, ...]) -> Result:
        self.lldpad = "inactive"
        return ok()

    def write(self, machine: Machine, path: str, value: str) -> None:
        """What the kernel makes of a write, in the place of ``files.write``."""
        target = machine.path(path)
        if path in self.refuse or not target.exists():
            raise OSError(errno.EINVAL, "Invalid argument")
        if path.endswith("/traffic_class"):
            rules = [line for line in target.read_text(encoding="ascii").splitlines() if not line.startswith("Global")]
            value = "\n".join([f"Global tclass={value}", *rules])
        if path.endswith("/np_cnp_prio"):
            (target.parent / "np_cnp_prio_mode").write_text("0\n", encoding="ascii")
        target.write_text(f"{value}\n", encoding="ascii")

    def calls(self, tool: str) -> list[tuple[str, ...]]:
        return [call for call in self.node.calls if call[0] == tool]

    # -- dcb --------------------------------------------------------------------------------------

    def dcb(self, call: tuple[str, ...]) -> Result:
        if call[1:3] == ("-j", "-b"):
            lines = Path(call[3]).read_text(encoding="ascii").splitlines()
            return ok(",".join(json.dumps(self.dcb_object(*line.split()[::3])) for line in lines) + "\n")
        if call[1] == "-N":
            return ok(self.dcb_text(call[2], call[5]))
        kind, verb, port, words = call[1], call[2], self.ports[call[4]], list(call[5:])
        if kind in self.refuse:
            return ok()
        if kind == "app":
            port["app"] = {} if verb == "flush" else {
                **port["app"], **{int(word.split(":")[0]): int(word.split(":")[1]) for word in words[1:]}}
        elif kind == "dcbx":
            port["host"] = True
        else:
            self._dcb_maps(port, words)
        return ok()

    @staticmethod
    def _dcb_maps(port: dict[str, t.Any], words: list[str]) -> None:
        names = {"prio-pfc": "pfc", "prio-tc": "prio_tc", "tc-tsa": "tc_tsa", "tc-bw": "tc_bw",
                 "prio-buffer": "prio_buffer", "buffer-size": "buffer_size"}
        name = ""
        for word in words:
            if ":" not in word:
                if name == "delay":
                    port["delay"] = int(word)
                name = word
                continue
            key, _colon, text = word.partition(":")
            value: t.Any = text == "on" if name == "prio-pfc" else int(text) if text.isdigit() else text
            for index in range(8) if key == "all" else (int(key),):
                port[names[name]][index] = value

    def dcb_object(self, kind: str, netdev: str) -> dict[str, t.Any]:
        port = self.ports[netdev]
        return {
            "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": port["delay"], "prio_pfc": port["pfc"]},
            "ets": {"willing": False, **{key: port[key] for key in ("prio_tc", "tc_tsa", "tc_bw")}},
            # The third item is what iproute2 before 6.3 prints.
            "app": {"dscp_prio": [[*item, " "] for item in sorted(port["app"].items())]} if port["app"] else {},
            "dcbx": {"host": True, "ieee": True} if port["host"] else {"cee": True, "ieee": True},
            "buffer": {"prio_buffer": port["prio_buffer"], "buffer_size": port["buffer_size"], "total_size": TOTAL},
        }[kind]

    def dcb_text(self, kind: str, netdev: str) -> str:
        port = self.ports[netdev]

        def pairs(values: t.Sequence[t.Any]) -> str:
            return "".join(f"{number}:{value} " for number, value in enumerate(values))

        return {
            "pfc": f"pfc-cap 8 macsec-bypass off delay {port['delay']} \n"
                   f"prio-pfc {pairs(['on' if on else 'off' for on in port['pfc']])}\n",
            "ets": "willing off ets-cap 8 cbs off \n" + "".join(
                f"{name.replace('_', '-')} {pairs(port[name])}\n" for name in ("tc_bw", "tc_tsa", "prio_tc")),
            "app": f"dscp-prio {''.join(f'{dscp}:{prio} ' for dscp, prio in sorted(port['app'].items()))}\n"
                   if port["app"] else "",
            "dcbx": "host ieee \n" if port["host"] else "cee ieee \n",
            "buffer": f"prio-buffer {pairs(port['prio_buffer'])}\nbuffer-size {pairs(port['buffer_size'])}\n"
                      f"total-size {TOTAL}b \n",
        }[kind]

    # -- mlnx_qos ---------------------------------------------------------------------------------

    def mlnx_qos(self, call: tuple[str, ...]) -> Result:
        port, words = self.ports[call[2]], list(call[3:])
        if words != ["-a"] and words[0] not in self.refuse:
            while words:
                self._option(port, words.pop(0), words.pop(0))
        return ok(self.mlnx_qos_text(port))

    @staticmethod
    def _option(port: dict[str, t.Any], name: str, text: str) -> None:
        if name == "--trust":
            port["app"] = {} if text == "pcp" else port["app"] or {dscp: dscp >> 3 for dscp in range(64)}
        elif name == "--dscp2prio":
            _set, dscp, priority = text.split(",")
            port["app"][int(dscp)] = int(priority)
        elif name == "-d":
            port["host"] = text == "os"
        elif name == "--cable_len":
            port["delay"] = int(text)
        else:
            key = {"--pfc": "pfc", "-p": "prio_tc", "-s": "tc_tsa", "-t": "tc_bw", "--prio2buffer": "prio_buffer",
                   "--buffer_size": "buffer_size"}[name]
            words = text.split(",")
            port[key] = words if key == "tc_tsa" else [word == "1" if key == "pfc" else int(word) for word in words]

    @staticmethod
    def mlnx_qos_text(port: dict[str, t.Any]) -> str:
        lines = [f"DCBX mode: {'OS' if port['host'] else 'Firmware'} controlled",
                 f"Priority trust state: {'dscp' if port['app'] else 'pcp'}"]
        if port["app"]:
            lines.append("dscp2prio mapping:")
        for priority in range(8):
            codes = sorted((dscp for dscp, to in port["app"].items() if to == priority), reverse=True)
            lines += [f"\tprio:{priority} dscp:{''.join(f'{code:02d},' for code in codes[at:at + 8])}"
                      for at in range(0, len(codes), 8)]
        lines += [f"Receive buffer size (bytes): {''.join(f'{size},' for size in port['buffer_size'])}"
                  f"max_buffer_size={TOTAL}", f"Cable len: {port['delay']}", "PFC configuration:",
                  "\tpriority    0   1   2   3   4   5   6   7",
                  "\tenabled     " + "".join(f"{int(on)}   " for on in port["pfc"]),
                  "\tbuffer      " + "".join(f"{number}   " for number in port["prio_buffer"])]
        for tc in range(8):
            share = f", bw: {port['tc_bw'][tc]}%" if port["tc_tsa"][tc] == "ets" else ""
            lines.append(f"tc: {tc} ratelimit: unlimited, tsa: {port['tc_tsa'][tc]}{share}")
            lines += [f"\t priority:  {priority}" for priority in range(8) if port["prio_tc"][priority] == tc]
        return "\n".join(lines) + "\n"
