# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.model import Mode, Node, Request, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Device, Gid, Port

A, B = "0000:03:00.0", "0002:03:00.0"
SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
MODE_PATH = "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode"


def pair(index: int, address: str, ndev: str | None = "rail0") -> list[Gid]:
    """v1 and v2 of an address, as the kernel adds them."""
    family = "ipv6" if ":" in address else "ipv4"
    kinds = ("IB/RoCE v1", "RoCE v2")
    return [Gid(index + number, "x", kind, ndev, family, address) for number, kind in enumerate(kinds)]


LINK_LOCAL = pair(0, "fe80::ff:fe00:11")


def node(*gids: Gid, **fields: t.Any) -> Node:
    port = Port(1, link_layer="Ethernet", netdev="rail0", gids=(*LINK_LOCAL, *gids))
    device = Device(A, rdma_device="mlx5_0", ports=(port,))
    return Node((dataclasses.replace(device, **fields),), {A: Mode("v2")}, "configfs")


def request(*subnets: str, **fields: t.Any) -> Request:
    return Request((Want(A, subnets),), **fields)


def texts(problems: t.Sequence[Problem]) -> list[str]:
    return [problem.text() for problem in problems]


def index(request: Request, node: Node) -> list[int]:
    return [gid.index for gid in plan.candidates(request, request.ports[0], node)]


# -- choosing -------------------------------------------------------------------------------------

@pytest.mark.parametrize(("first", "want"), [(2, 3), (4, 5), (10, 11)])
def test_the_index_follows_from_the_table(first: int, want: int) -> None:
    assert index(request(), node(*pair(first, "198.51.100.1"))) == [want]


def test_version_family_and_subnet() -> None:
    have = node(*pair(2, "198.51.100.1"), *pair(4, "2001:db8::1"), *pair(6, "169.254.3.4"),
                *pair(8, "203.0.113.9", "vlan5"))
    assert index(request("198.51.100.0/24"), have) == [3]
    assert index(request("198.51.100.0/24", version="v1"), have) == [2]
    assert index(request("203.0.113.0/24"), have) == [9]
    assert index(request("192.0.2.0/24", "198.51.100.0/25"), have) == [3]
    assert index(request(family="ipv6"), have) == [5]
    # A link-local address counts where its subnet is asked for.
    assert index(request("fe80::/10", family="ipv6"), have) == [1]
    assert index(request("169.254.0.0/16"), have) == [7]
    assert index(request(), have) == [3, 9]


def test_several_and_none_are_named() -> None:
    have = node(*pair(2, "198.51.100.1"), *pair(4, "198.51.100.2", "vlan5"))
    assert texts(plan.check_gids(request("198.51.100.0/24"), have)) == [
        f"{A} (mlx5_0): got 2: 198.51.100.1 (RoCE v2, rail0, index 3); 198.51.100.2 (RoCE v2, vlan5, index 5), wanted "
        "one RoCE v2 GID of an ipv4 address in 198.51.100.0/24 (say which by subnets)"]
    none = texts(plan.check_gids(request(), node(*pair(2, "169.254.1.1", None))))
    assert none[0].startswith(f"{A} (mlx5_0): got none within 5 s; the table has: fe80::ff:fe00:11 (IB/RoCE v1, rail0")
    assert "169.254.1.1 (RoCE v2, netdev elsewhere, index 3), wanted one RoCE v2 GID" in none[0]
    assert none[0].endswith("(has rail0 its address?)")
    assert plan.check_gids(request(must_have=False), node()) == []
    assert "2: " in texts(plan.check_gids(request("198.51.100.0/24", must_have=False), have))[0]


def test_an_empty_table() -> None:
    bare = Node((Device(A, rdma_device="mlx5_0", ports=(Port(1, link_layer="Ethernet"),)),))
    assert "the table has: nothing" in texts(plan.check_gids(request(), bare))[0]
    assert plan.details(request(must_have=False), bare)[0]["index"] is None


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
@pytest.mark.parametrize(("name", "device", "options", "want"), [
    ("show_gids-1", "mlx5_0", {}, [5]), ("show_gids-2", "mlx5_1", {}, [7]), ("show_gids-3", "mlx5_0", {}, []),
    ("show_gids-4", "mlx5_10", {}, [3]), ("show_gids-5", "rocep105s0", {"family": "ipv6"}, [1]),
    ("show_gids-5", "rocep193s0f0", {"family": "ipv6"}, []),
])
def test_tables_of_the_field(name: str, device: str, options: dict[str, t.Any], want: list[int]) -> None:
    kinds = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
    gids = []
    for line in (SAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        fields = [field for field in line.split("\t") if field]
        if fields[0] == device:
            gids.append(parse.gid(int(fields[2]), fields[3], kinds[fields[-2]], fields[-1]))
    port = Port(1, link_layer="Ethernet", gids=tuple(gids))
    assert index(request(**options), Node((Device(A, rdma_device=device, ports=(port,)),))) == want


# -- what is wrong with the request ---------------------------------------------------------------

@pytest.mark.parametrize(("subnet", "got"), [
    ("198.51.100.1/24", "has host bits set"), ("rail", "'rail', wanted a subnet such as"),
    ("2001:db8::/32", "2001:db8::/32, wanted a subnet of ipv4"),
])
def test_subnets(subnet: str, got: str) -> None:
    found = texts(plan.check(request(subnet), node(*pair(2, "198.51.100.1"))))
    assert len(found) == 1
    assert got in found[0]


def test_addresses() -> None:
    wants = (Want("03:00.0"), Want(A), Want(A), Want("0000:99:00.0"))
    broken = Problem("/sys/x", "ENOTCONN", "a readable file")
    found = texts(plan.check(Request(wants), dataclasses.replace(node(), problems=(broken,))))
    assert [text.split(":")[0] for text in found] == ["ports", "0000", "0000", "/sys/x"]
    assert "listed twice, wanted each PCI address once; 0000:99:00.0: got no such mlx5 port" in "; ".join(found)
    assert f"(there is: {A})" in found[2]


@pytest.mark.parametrize(("fields", "got"), [
    ({"rdma_device": None}, "no RDMA device"),
    ({"ports": (Port(1, link_layer="InfiniBand"),)}, "link layer InfiniBand, wanted Ethernet"),
])
def test_devices_that_have_no_roce(fields: dict[str, t.Any], got: str) -> None:
    assert got in texts(plan.check(request(), node(**fields)))[0]


def test_a_mode_that_cannot_be_seen() -> None:
    have = dataclasses.replace(node(), modes={A: Mode(None, "unsupported: no configfs")})
    assert "unsupported: no configfs, wanted v2 to be set there" in texts(plan.check(request(roce_mode="v2"), have))[0]
    assert plan.check(request(), have) == []


# -- plan -----------------------------------------------------------------------------------------

def test_golden_plan() -> None:
    assert plan.plan(request(), node()) == []
    assert plan.plan(request(roce_mode="v2"), node()) == []
    steps = plan.plan(request(roce_mode="v1"), node())
    assert [(step.command, step.text, step.disruptive, step.why) for step in steps] == [
        (("write", MODE_PATH), "IB/RoCE v1", "none", "RDMA-CM mode is v2")]
    tool = dataclasses.replace(node(), door="cma_roce_mode", modes={A: Mode("v1")})
    assert [step.command for step in plan.plan(request(roce_mode="v2"), tool)] == [
        ("cma_roce_mode", "-d", "mlx5_0", "-p", "1", "-m", "2")]


def test_verify_and_predict() -> None:
    assert plan.verify(request(), node()) == []
    assert texts(plan.verify(request(roce_mode="v1"), node())) == [
        f"RDMA-CM mode of {A}: got v2, wanted v1 (the write reported success; read back)"]
    assert plan.predict(request(roce_mode="v1"), node()) == [{"pci": A, "roce_mode": "v1"}]
    assert plan.predict(request(), Node()) == [{"pci": A, "roce_mode": None}]


# -- moved ----------------------------------------------------------------------------------------

def test_an_index_that_moved() -> None:
    def ports(index: int | None, gid: str | None = "g", pci: str = A) -> list[dict[str, t.Any]]:
        return [{"pci": pci, "gid": gid, "index": index, "netdev": "rail0"}]

    assert plan.moved(ports(3), ports(5)) == [{
        "pci": A, "before": {"gid": "g", "index": 3, "netdev": "rail0"},
        "now": {"gid": "g", "index": 5, "netdev": "rail0"}}]
    assert plan.moved(ports(3), ports(3)) == []
    assert plan.moved(ports(3, "g"), ports(3, "h")) != []
    for nothing in (None, "x", [], ["x"], ports(3, pci=B), ports(None, None)):
        assert plan.moved(nothing, ports(5)) == []
