# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node below a temporary directory: a sysfs tree, networkd's files, and tools that are functions over both."""
from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import rdma_mtu_bytes

Answer = t.Callable[[tuple[str, ...]], Result]

DEVINFO = """\
hca_id:\t{hca}
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.39.1002
\tvendor_id:\t\t\t0x02c9
\tboard_id:\t\t\tMT_0000000834
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t{mtu}
\t\t\tlink_layer:\t\tEthernet

"""
_ENUM = {256: "256 (1)", 512: "512 (2)", 1024: "1024 (3)", 2048: "2048 (4)", 4096: "4096 (5)", 0: "invalid MTU (0)"}


def ok(stdout: str = "") -> Result:
    return Result((), "ok", 0, stdout)


def failed(rc: int = 1, stderr: str = "") -> Result:
    return Result((), "failed", rc, "", stderr)


@dataclass
class Rail:
    pci: str
    netdev: str
    rdma: str
    address: str
    network_file: str = ""

    def __post_init__(self) -> None:
        self.network_file = self.network_file or f"/etc/systemd/network/20-{self.netdev}.network"


@dataclass
class FakeNode:
    root: Path
    rails: list[Rail] = field(default_factory=list)
    override: dict[tuple[str, ...], Answer] = field(default_factory=dict)
    calls: list[tuple[str, ...]] = field(default_factory=list)
    networkd: str = "active"
    admin_state: dict[str, str] = field(default_factory=dict)
    link_fields: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    max_mtu: int = 9978
    default_device: str = "eth0"
    now: float = 0.0

    # -- building ---------------------------------------------------------------------------------

    def put(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def get(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text(encoding="utf-8").strip()

    def add_netdev(self, name: str, mtu: int = 1500) -> None:
        for key, value in {"mtu": mtu, "address": "02:00:00:00:00:11", "operstate": "up", "flags": "0x1003",
                           "type": 1}.items():
            self.put(f"/sys/class/net/{name}/{key}", f"{value}\n")

    def add_rail(self, rail: Rail) -> None:
        base = f"/sys/bus/pci/devices/{rail.pci}"
        for key, value in {"vendor": "0x15b3", "device": "0x1021", "numa_node": "0"}.items():
            self.put(f"{base}/{key}", f"{value}\n")
        (self.root / base.lstrip("/") / "driver").symlink_to("../../../drivers/mlx5_core")
        (self.root / base.lstrip("/") / "net" / rail.netdev).mkdir(parents=True)
        (self.root / base.lstrip("/") / "infiniband" / rail.rdma).mkdir(parents=True)
        self.add_netdev(rail.netdev)
        self._add_rdma(rail)
        self.put(rail.network_file, f"[Match]\nName={rail.netdev}\n\n[Network]\nAddress={rail.address}/24\n")
        self.rails.append(rail)

    def _add_rdma(self, rail: Rail) -> None:
        base = f"/sys/class/infiniband/{rail.rdma}"
        self.put(f"{base}/fw_ver", "28.39.1002\n")
        self.put(f"{base}/board_id", "MT_0000000834\n")
        for key, value in {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
                           "link_layer": "Ethernet"}.items():
            self.put(f"{base}/ports/1/{key}", f"{value}\n")
        first, second = (f"{int(a):02x}{int(b):02x}" for a, b in zip(*[iter(rail.address.split("."))] * 2))
        ipv4 = f"0000:0000:0000:0000:0000:ffff:{first}:{second}"
        local = "fe80:0000:0000:0000:0000:00ff:fe00:0011"
        for index, gid in enumerate([local, local, ipv4, ipv4, "0000:0000:0000:0000:0000:0000:0000:0000"]):
            self.put(f"{base}/ports/1/gids/{index}", f"{gid}\n")
            if not gid.endswith("0000:0000"):
                self.put(f"{base}/ports/1/gid_attrs/types/{index}", "RoCE v2\n" if index % 2 else "IB/RoCE v1\n")
                self.put(f"{base}/ports/1/gid_attrs/ndevs/{index}", f"{rail.netdev}\n")

    # -- the machine ------------------------------------------------------------------------------

    def machine(self) -> Machine:
        return Machine(self.root, self.run, self.sleep, lambda: self.now, pid=1, tool_timeout_seconds=1)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        call = tuple(argv)
        self.calls.append(call)
        for prefix, answer in self.override.items():
            if call[: len(prefix)] == prefix:
                # As the runner does, whatever the answer says.
                return replace(answer(call), argv=call)
        return replace(self.default(call), argv=call)

    def default(self, call: tuple[str, ...]) -> Result:
        if call[:4] == ("ip", "link", "set", "dev"):
            self.put(f"/sys/class/net/{call[4]}/mtu", call[6])
            return ok()
        answers: dict[tuple[str, ...], t.Callable[[], Result]] = {
            ("ip", "-d", "-j", "addr", "show"): lambda: ok(json.dumps(self.links())),
            ("ip", "-j", "-4", "route", "show", "default"): lambda: ok(
                json.dumps([{"dst": "default", "gateway": "192.0.2.254", "dev": self.default_device}])),
            ("ip", "-j", "-6", "route", "show", "default"): lambda: ok("[]"),
            ("ss", "-tnHp", "state", "established"): ok,
            ("systemctl", "is-active", "systemd-networkd.service"): lambda: Result(
                (), "ok" if self.networkd == "active" else "failed", 0, f"{self.networkd}\n"),
            ("networkctl", "--json=short", "list"): lambda: ok(json.dumps(self.network_list())),
            ("networkctl", "reload"): ok,
            ("rdma", "-j", "resource", "show", "qp"): lambda: ok("[]"),
            ("modinfo", "mlx5_core"): lambda: failed(1, "modinfo: ERROR: Module mlx5_core not found."),
            ("ofed_info", "-s"): lambda: Result((), "missing"),
            ("ibv_devinfo",): lambda: ok(self.devinfo()),
        }
        return answers[call]()

    def links(self) -> list[dict[str, t.Any]]:
        found = [{"ifname": "eth0", "ifindex": 2, "max_mtu": 65535, "addr_info": [{"local": "192.0.2.1"}]}]
        for index, rail in enumerate(self.rails, 3):
            found.append({"ifname": rail.netdev, "ifindex": index, "max_mtu": self.max_mtu,
                          "addr_info": [{"local": rail.address}], **self.link_fields.get(rail.netdev, {})})
        return found

    def network_list(self) -> dict[str, t.Any]:
        links = [{"Index": 2, "Name": "eth0", "AdministrativeState": "configured", "OperationalState": "routable",
                  "NetworkFile": "/etc/systemd/network/10-eth0.network"}]
        for index, rail in enumerate(self.rails, 3):
            state = self.admin_state.get(rail.netdev, "configured")
            entry = {"Index": index, "Name": rail.netdev, "AdministrativeState": state, "OperationalState": "routable"}
            if state != "unmanaged":
                entry["NetworkFile"] = rail.network_file
            links.append(entry)
        return {"Interfaces": links}

    def devinfo(self) -> str:
        return "".join(DEVINFO.format(hca=rail.rdma, mtu=_ENUM[rdma_mtu_bytes(self.mtu(rail))]) for rail in self.rails)

    def mtu(self, rail: Rail) -> int:
        return int(self.get(f"/sys/class/net/{rail.netdev}/mtu"))

    def files(self) -> dict[str, str]:
        """Everything below /etc and /run, to see whether anything was written."""
        return {str(path.relative_to(self.root)): path.read_text(encoding="utf-8")
                for top in ("etc", "run") for path in sorted((self.root / top).rglob("*"))
                if path.is_file() and path.name != "aidc.lock"}


def two_rails(root: Path) -> FakeNode:
    node = FakeNode(root)
    node.add_netdev("eth0")
    node.add_rail(Rail("0000:03:00.0", "rail0", "mlx5_0", "198.51.100.1"))
    node.add_rail(Rail("0002:03:00.0", "rail1", "rocep3s0f0", "203.0.113.1"))
    return node
