# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layouts as the tools print them; names and addresses are of the documentation."""
from __future__ import annotations

import json

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo.model import (
    Fabric,
    Neighbour,
    Route,
    TimeState,
)

from tests.unit.plugins.host_node import CHRONY, LLDP, SMI_HEAD, UUID, smi


@pytest.mark.parametrize(("text", "wanted"), [
    ('NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n', ("rhel", "9.4", "redhat")),
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n', ("rocky", "9.4", "redhat")),
    ("ID=debian\nVERSION_ID=\"13\"\n", ("debian", "13", "debian")),
    ("# comment\nID=arch\nBROKEN=\"x\n", ("arch", None, None)),
])
def test_os_release(text: str, wanted: tuple[str, str | None, str | None]) -> None:
    found = parse.os_release(text)
    assert (found["id"], found["version"], found["family"]) == wanted


def test_os_release_without_an_id() -> None:
    with pytest.raises(ValueError, match="no ID"):
        parse.os_release("NAME=x\n")


def test_base_os_the_last_update_wins() -> None:
    text = ('DGX_PRETTY_NAME="NVIDIA DGX Server"\nDGX_SWBUILD_VERSION="7.1.0"\nDGX_PLATFORM="DGX Server for GB200"\n'
            '\nDGX_OTA_VERSION="7.1.1"\nDGX_OTA_DATE="x"\n\nDGX_OTA_VERSION="7.2.0"\n')
    assert parse.base_os(text) == {"version": "7.2.0", "build": "7.1.0", "name": "NVIDIA DGX Server",
                                   "platform": "DGX Server for GB200"}
    assert (parse.base_os('DGX_SWBUILD_VERSION="7.1.0"\n') or {})["version"] == "7.1.0"
    assert parse.base_os("") is None


@pytest.mark.parametrize(("text", "version", "flavour"), [
    ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.65.06  Release Build  (a@b)  Mon\n", "580.65.06",
     "open"),
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Tue Jun 23\nGCC version: 13\n", "570.133.20",
     "proprietary"),
])
def test_nvidia_version(text: str, version: str, flavour: str) -> None:
    assert parse.nvidia_version(text) == {"version": version, "flavour": flavour}


@pytest.mark.parametrize("text", ["", "garbage\n", "NVRM version: none\n"])
def test_not_nvidias_file(text: str) -> None:
    with pytest.raises(ValueError, match="NVRM"):
        parse.nvidia_version(text)


def test_cpu_model() -> None:
    assert parse.cpu_model("processor : 0\nmodel name\t: AMD EPYC 9754 128-Core Processor\n") == \
        "AMD EPYC 9754 128-Core Processor"
    assert parse.cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n") == "Neoverse-V2"
    assert parse.cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xfff\n") == "implementer 0x41 part 0xfff"
    assert parse.cpu_model("") is None


def test_fabrics() -> None:
    """What stands below Health is not the fabric's own state."""
    assert parse.fabrics(smi()) == [Fabric("Completed", "Success", 1, UUID)] * 4
    assert parse.fabrics(smi("N/A", "N/A", "N/A", "N/A")) == [Fabric("N/A", "N/A", None, "N/A")] * 4
    assert parse.fabrics(SMI_HEAD + "GPU 00000000:53:00.0\n    Product Name : NVIDIA H100\n") == []


def test_fabric_at_the_end_of_the_text() -> None:
    assert parse.fabrics(SMI_HEAD + "    Fabric\n        State   : Completed\n        CliqueId : 7") == [
        Fabric("Completed", None, 7)]


def test_not_nvidia_smis_text() -> None:
    with pytest.raises(ValueError, match="NVSMI LOG"):
        parse.fabrics("Failed to initialize NVML")


def test_neighbours() -> None:
    assert parse.neighbours(json.dumps(LLDP)) == [
        Neighbour("rail0", "leaf01-r0", "02:00:00:00:01:01", "swp1s0"),
        Neighbour("rail1", None, "02:00:00:00:01:02", "swp1s1")]
    assert parse.neighbours('{"lldp": [{}]}') == []


@pytest.mark.parametrize("text", ['{"lldp": {"interface": {}}}', "[]", "unknown command", ""])
def test_not_json0(text: str) -> None:
    with pytest.raises(ValueError):
        parse.neighbours(text)


def test_chrony() -> None:
    assert parse.chrony(CHRONY) == TimeState("chrony", True, -0.000412, 3)
    lost = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n"
    # Offset 0 of a clock that nobody corrects says nothing.
    assert parse.chrony(lost) == TimeState("chrony", False, None, 0)


@pytest.mark.parametrize("text", ["506 Cannot talk to daemon\n", "", CHRONY.replace(",3,", ",x,")])
def test_not_chronys_fields(text: str) -> None:
    with pytest.raises(ValueError):
        parse.chrony(text)


def test_timedatectl() -> None:
    assert parse.timedatectl("NTPSynchronized=no\n") == TimeState("timedatectl", False)
    with pytest.raises(ValueError, match="NTPSynchronized"):
        parse.timedatectl("Failed to query server: Connection timed out\n")


def test_default_routes() -> None:
    two = [{"dst": "default", "gateway": "192.0.2.254", "dev": "eth0", "protocol": "dhcp", "metric": 100},
           {"dst": "default", "gateway": "198.51.100.254", "dev": "eth1", "metric": 200}]
    assert parse.default_routes(json.dumps(two), 4) == [
        Route(4, 0, "eth0", "192.0.2.254", 100), Route(4, 1, "eth1", "198.51.100.254", 200)]
    hops = [{"gateway": "192.0.2.254", "dev": "eth0", "weight": 1},
            {"via": {"family": "inet6", "host": "fe80::1"}, "dev": "eth1"}]
    multipath = [{"dst": "default", "metric": 1024, "nexthops": hops}]
    assert parse.default_routes(json.dumps(multipath), 4) == [
        Route(4, 0, "eth0", "192.0.2.254", 1024), Route(4, 0, "eth1", "fe80::1", 1024)]
    assert parse.default_routes("", 6) == []
    with pytest.raises(ValueError):
        parse.default_routes('{"a": 1}', 4)


def test_getent() -> None:
    text = "192.0.2.7       STREAM n1.example.com\n192.0.2.7       DGRAM\n192.0.2.7       RAW\n2001:db8::7 STREAM\n"
    assert parse.ahosts(text) == (["192.0.2.7", "2001:db8::7"], "n1.example.com")
    assert parse.hosts("192.0.2.7       n1.example.com n1\n\n") == {"192.0.2.7": ["n1.example.com", "n1"]}
    assert parse.ahosts("fe80::1%eth0 STREAM n1\n") == (["fe80::1%eth0"], "n1")
    for bad in ("", "one\n", "no address here\n"):
        with pytest.raises(ValueError):
            parse.ahosts(bad)


@pytest.mark.parametrize(("text", "mib"), [
    ("MemTotal:       24683520 kB\nMemFree:  1 kB\n", 24105), ("", None), ("MemTotal: lots\n", None),
    ("MemFree: 1 kB\n", None)])
def test_memory(text: str, mib: int | None) -> None:
    assert parse.memory_mib(text) == mib
