# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trays of one NVLink domain below one folder, with systemd's unit, the daemons and nvidia-imex-ctl over all of them.

A daemon has the files of its last start; two that have other lists, or are of other versions, do not speak to each
other until they are started again [driver-slurm-k8s.md 1.8]. State is in files, so that a play's processes share it.
"""
from __future__ import annotations

import json
import shutil
import time
import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import argspec, parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import CONFIG_FILE, NODES_FILE, UNIT

from tests.unit.plugins import gpu_node
from tests.unit.plugins.fake import FakeNode, failed, ok
from tests.unit.plugins.holders import process

UPTIME = 1e6
VERSION, OLD = "580.126.09", "580.95.05"
CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"
# As the package has it, shortened.
CONFIG = """\
# Description: level of the log; SERVER_PORT=1 in a comment is none
LOG_LEVEL=4
BIND_INTERFACE_IP=
SERVER_PORT=50000
IMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg
#IMEX_CMD_ENABLED=1
IMEX_CMD_ENABLED=0
IMEX_CMD_PORT=50005
"""
LEGEND = """\
Connectivity Table Legend:
I - Invalid - Node wasn't reachable, no connection status available
N - Never Connected
!V! - Version mismatch, communication disabled.
!M! - Node map mismatch, communication disabled.
C - Connected - Ready for operation

5/4/2026 06:08:10.580
Nodes:
"""
# What -j says of the two mismatches is not known; these words stand for any.
WORDS = {"C": "CONNECTED", "N": "NEVER_CONNECTED", "I": "INVALID", "!V!": "VERSIONS", "!M!": "MAPS"}


@dataclass
class ImexNode(FakeNode):
    """``root`` is a folder beside those of the other trays."""

    # -- state in a file --------------------------------------------------------------------------------------------

    def data(self) -> dict[str, t.Any]:
        found: dict[str, t.Any] = json.loads((self.root / "imex.json").read_text(encoding="utf-8"))
        return found

    def change(self, **values: t.Any) -> None:
        known = self.data() if (self.root / "imex.json").exists() else {}
        self.put("/imex.json", json.dumps({**known, **values}))

    @property
    def peers(self) -> list[ImexNode]:
        return [ImexNode(path.parent) for path in sorted(self.root.parent.glob("*/imex.json"))]

    # -- building ---------------------------------------------------------------------------------------------------

    def build(self, *addresses: str) -> None:
        self.change(addresses=list(addresses), active="inactive", enabled="disabled", started=0, list=None, cmd="",
                    package=VERSION, driver=VERSION)
        self.load_driver(VERSION)
        self.put(CONFIG_FILE, CONFIG)
        self.put("/proc/1/comm", "systemd\n")
        (self.root / "proc/1/fd").mkdir()
        (self.root / "sys/class/infiniband_verbs").mkdir(parents=True)

    def load_driver(self, version: str | None) -> None:
        line = gpu_node.OPEN.format(arch="aarch64", version=version)
        if version is None:
            (self.root / "proc/driver/nvidia/version").unlink()
        else:
            self.put("/proc/driver/nvidia/version", f"{line}\n{gpu_node.GCC}\n")

    def reboot(self) -> None:
        """Processes and channels go; an enabled unit starts with what is on the disk."""
        self.change(active="inactive", list=None)
        for path in (self.root / "proc").glob("[0-9]*"):
            if path.name != "1":
                shutil.rmtree(path)
        if self.data()["enabled"] == "enabled":
            self.run(("systemctl", "start", UNIT), 1)

    def daemon_of_a_pod(self, pid: int = 900) -> None:
        process(self.root, pid, "nvidia-imex", cgroup="/kubepods.slice/kubepods-pod"
                "3f1b2c4d_0000_4000_8000_00000000000a.slice/cri-containerd-" + "ab" * 32 + ".scope")

    def machine(self) -> Machine:
        """It is up for long; ``now`` is what the test has slept."""
        return replace(super().machine(), monotonic=lambda: UPTIME + self.now)

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, check_mode: bool = False, **options: t.Any) -> dict[str, t.Any]:
        spec = {name: option.get("default") for name, option in argspec.imex_domain().items()}
        return configure(self.machine(), argspec.request({**spec, "domain": "nvl1", **options}), check_mode)

    def ran(self, *prefix: str) -> list[tuple[str, ...]]:
        return [call for call in self.calls if call[:len(prefix)] == prefix]

    # -- tools ------------------------------------------------------------------------------------------------------

    def links(self) -> list[dict[str, t.Any]]:
        return [{"ifname": "lo", "ifindex": 1, "addr_info": [{"local": "127.0.0.1"}]},
                {"ifname": "eth0", "ifindex": 2, "addr_info": [{"local": one} for one in self.data()["addresses"]]}]

    def default(self, call: tuple[str, ...]) -> Result:
        answers: dict[tuple[str, ...], t.Callable[[], Result]] = {
            ("systemctl", "show"): lambda: ok(self.show()),
            ("systemctl",): lambda: self.unit(call[1], call[2:]),
            ("nvidia-imex-ctl", "-q"): self.daemon,
            ("nvidia-imex-ctl", "-N", "-j"): lambda: ok(json.dumps(self.domain_json())),
            ("nvidia-imex-ctl", "-N"): lambda: ok(self.domain_table()),
            ("modinfo", "nvidia"): lambda: ok(gpu_node.MODINFO.format(version=VERSION, licence="Dual MIT/GPL")),
            ("dpkg-query",): self.packages,
        }
        for prefix, answer in answers.items():
            if call[:len(prefix)] == prefix:
                return answer()
        return super().default(call)

    def packages(self) -> Result:
        version = self.data()["package"]
        return ok(f"nvidia-imex\t{version}-1\thold\tinstalled\n") if version else Result((), "failed", 1)

    def show(self) -> str:
        data = self.data()
        load = "masked" if data["enabled"].startswith("masked") else "loaded"
        age = time.time() - data["started"]
        started = int((self.machine().monotonic() - age) * 1e6) if data["started"] else 0
        return (f"LoadState={load}\nActiveState={data['active']}\nUnitFileState={data['enabled']}\n"
                f"InactiveExitTimestampMonotonic={started}\n")

    def unit(self, verb: str, rest: tuple[str, ...]) -> Result:
        masked = self.data()["enabled"].startswith("masked")
        if verb == "stop":
            self.change(active="inactive", list=None)
        elif verb in ("mask", "unmask"):
            self.change(enabled="masked" if verb == "mask" else "disabled")
        elif masked:
            return failed(1, f"Failed to {verb} unit: Unit {UNIT} is masked.")
        elif verb in ("enable", "disable"):
            self.change(enabled=f"{verb}d")
        else:
            return self.start()
        return ok()

    def start(self) -> Result:
        text = self.get(NODES_FILE) if (self.root / NODES_FILE.lstrip("/")).exists() else ""
        if len(set(text.split()) & set(self.data()["addresses"])) != 1:
            self.change(active="failed")
            return failed(1, f"Job for {UNIT} failed because the control process exited with error code.")
        keys = parse.keys(self.get(CONFIG_FILE), ["IMEX_CMD_ENABLED"])
        self.change(active="active", started=time.time(), list=text, cmd=keys["IMEX_CMD_ENABLED"])
        return ok()

    def daemon(self) -> Result:
        data = self.data()
        if data["active"] != "active" or data["cmd"] != "1":
            return Result((), "failed", 1, "Failed to connect to the IMEX command service\n")
        return ok("READY\n")

    def domain(self) -> tuple[list[tuple[str, ImexNode | None]], dict[tuple[int, int], str], str]:
        """The nodes of this node's list, cells of the table, and the state."""
        by = {address: peer for peer in self.peers for address in peer.data()["addresses"]}
        nodes = [(address, by.get(address)) for address in self.get(NODES_FILE).split()]
        known = [peer.data() if peer else None for _address, peer in nodes]

        def cell(one: dict[str, t.Any] | None, other: dict[str, t.Any] | None) -> str:
            if not one or one["active"] != "active":
                return "I"
            if not other or other["active"] != "active":
                return "N"
            return "!V!" if one["package"] != other["package"] else "!M!" if one["list"] != other["list"] else "C"

        cells = {(i, j): cell(one, other) for i, one in enumerate(known) for j, other in enumerate(known)}
        good = sum(word == "C" for word in cells.values())
        return nodes, cells, "UP" if good == len(cells) else "DEGRADED" if good else "DOWN"

    def domain_json(self) -> dict[str, t.Any]:
        nodes, cells, state = self.domain()
        found = {}
        for index, (address, peer) in enumerate(nodes):
            up = peer is not None and peer.data()["active"] == "active"
            found[str(index)] = {
                "status": "READY" if up else "UNAVAILABLE", "host": address, "changed": True, "hostName": "",
                "version": peer.data()["package"] if up and peer else "",
                "connections": {str(other): {"host": nodes[other][0], "status": WORDS[cells[index, other]]}
                                for other in range(len(nodes))}}
        return {"nodes": found, "timestamp": "5/22/2025 19:46:40.891", "status": state}

    def domain_table(self) -> str:
        nodes, cells, state = self.domain()
        text = LEGEND
        for index, (address, peer) in enumerate(nodes):
            up = peer is not None and peer.data()["active"] == "active"
            version = peer.data()["package"] if up and peer else ""
            text += f"Node #{index:<3} - {address:<15} - {'READY' if up else 'UNAVAILABLE':<20} - Version: {version}\n"
        text += "\n Nodes From\\To  " + "".join(f"{index:<4}" for index in range(len(nodes))) + "\n"
        for index in range(len(nodes)):
            row = "".join(f"{cells[index, other]:<4}" for other in range(len(nodes)))
            text += f"{index:>8}        {row}\n"
        return f"{text}\nDomain State: {state}\n"


def tray(folder: Path, number: int) -> ImexNode:
    """As the driver's packages leave it: nothing runs, and there is no list."""
    node = ImexNode(folder / f"g{number}")
    node.build(f"192.0.2.{number}")
    return node


def rack(folder: Path, count: int = 3) -> list[ImexNode]:
    return [tray(folder, number) for number in range(1, count + 1)]


def nodes(trays: t.Sequence[ImexNode]) -> list[str]:
    return [one.data()["addresses"][0] for one in trays]


def settled(folder: Path, count: int = 3) -> list[ImexNode]:
    """A domain that runs with its list."""
    trays = rack(folder, count)
    for one in trays:
        one.call(nodes=nodes(trays), may_join=True)
        one.calls.clear()
    return trays
