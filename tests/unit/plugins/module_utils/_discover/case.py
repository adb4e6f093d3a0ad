# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts for discovery, as host_info and mlx5_info give them, and the classes of the tests."""
from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import read
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.model import Host, NodeClass, node_class

FOLDER = Path(__file__).with_name("classes")
TRAY_RAILS = ("0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0")
TRAY_GPUS = ("0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0")
UUID = "3f1b2c4d-0000-4000-8000-00000000000a"


def classes() -> list[NodeClass]:
    """The files are YAML; a managed node's Python, under which these tests run too, reads no YAML."""
    return [node_class(path.name, _variables(text := path.read_text(encoding="utf-8")), text)
            for path in sorted(FOLDER.glob("*.yml"))]


def _variables(text: str) -> dict[str, t.Any]:
    pairs = (line.split(": ", 1) for line in text.splitlines() if line.startswith("node_class_"))
    return {key: _value(value) for key, value in pairs}


def _value(text: str) -> t.Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class Results:
    """What two tasks registered for one host; tests change it before they read it."""

    def __init__(self, name: str, arch: str, gpus: t.Sequence[str], gpu: tuple[str, str | None], cores: int) -> None:
        self.name = name
        gpu_id, gpu_name = gpu
        self.info: dict[str, t.Any] = {
            "os": {"id": "ubuntu", "version": "24.04"}, "base_os": None, "architecture": arch, "cpu": {"cores": cores},
            "gpus": [{"pci": pci, "pci_id": gpu_id, "name": gpu_name} for pci in gpus], "nics": [], "netdevs": [],
            "nvlink_domain": None, "lldp": None, "dmi": {"product": "x"}, "findings": [], "problems": [],
            "needs_root": [], "drivers": {"nvidia": None, "mlx5": {"backend": "inbox", "version": None}},
            "default_routes": []}
        self.mlx5: dict[str, t.Any] = {"devices": [], "problems": [], "needs_root": []}

    def nic(self, pci: str, gbps: float | None, address: str | None = None, pci_id: str = "15b3:1021",
            link_layer: str = "Ethernet", switch: str | None = None) -> None:
        number = len(self.info["nics"])
        name = f"rail{number}"
        self.info["nics"].append({"pci": pci, "pci_id": pci_id, "is_vf": False, "driver": "mlx5_core"})
        self.info["netdevs"].append({"name": name, "addresses": [address] if address else [], "owner": "networkd"})
        if switch:
            self.info["lldp"] = [*(self.info["lldp"] or []), {"netdev": name, "chassis": switch, "port": "swp1"}]
        port = {"netdev": name, "state": "ACTIVE" if gbps else "DOWN", "speed_gbps": gbps, "link_layer": link_layer,
                "excluded": None}
        self.mlx5["devices"].append({"pci": pci, "pci_id": pci_id, "ports": [port],
                                     "pcie": {"current_speed_gts": 32.0, "current_width": 16}})

    def port(self, number: int) -> dict[str, t.Any]:
        found: dict[str, t.Any] = self.mlx5["devices"][number]["ports"][0]
        return found

    def lose_nic(self, number: int) -> None:
        del self.info["nics"][number]
        del self.mlx5["devices"][number]

    def host(self) -> Host:
        return read.host(self.name, self.info, self.mlx5)


def tray(name: str = "g1", number: int = 1, domain: str = UUID) -> Results:
    """A GB200 compute tray, with two BlueField-3."""
    made = Results(name, "aarch64", TRAY_GPUS, ("10de:2941", "GB200"), 144)
    for rail, pci in enumerate(TRAY_RAILS):
        made.nic(pci, 400.0, f"198.51.{rail}.{number}/24")
    for pci in ("0006:01:00.0", "0016:01:00.0"):
        made.nic(pci, 400.0, pci_id="15b3:a2dc")
    made.info["nvlink_domain"] = {"cluster_uuid": domain, "clique_id": 1}
    return made


def l40s(name: str = "l1", number: int = 1) -> Results:
    gpus = ("0000:21:00.0", "0000:61:00.0", "0000:a1:00.0", "0000:e1:00.0")
    made = Results(name, "x86_64", gpus, ("10de:26b9", "L40S"), 64)
    for rail, pci in enumerate(("0000:41:00.0", "0000:c1:00.0")):
        made.nic(pci, 200.0, f"203.0.{113 + rail}.{number}/24")
    return made


def epyc(name: str = "e1", number: int = 1, cores: int = 128) -> Results:
    made = Results(name, "x86_64", (), ("", None), cores)
    made.nic("0000:81:00.0", 100.0, f"203.0.113.{number}/24")
    return made
