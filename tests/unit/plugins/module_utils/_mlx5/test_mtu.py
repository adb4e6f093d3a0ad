# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import mtu
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import (
    Device,
    Node,
    Port,
    Request,
    Upper,
    Want,
)

A, B = "0000:03:00.0", "0000:03:00.1"


def port(name: str = "rail0", mtu: int = 1500, **fields: t.Any) -> Port:
    return Port(1, netdev=name, mtu_bytes=mtu, rdma_mtu_bytes=1024, **fields)


def node(*ports: Port) -> Node:
    return Node(tuple(Device(pci, rdma_device=None if number else "mlx5_bond_0", ports=(one,))
                      for number, (pci, one) in enumerate(zip((A, B), ports))))


def bonded(name: str, slave_mtu: int, bond_mtu: int, **fields: t.Any) -> Port:
    return port(name, slave_mtu, bond="bond0", bond_mtu_bytes=bond_mtu, bond_members=("rail0", "rail1"), **fields)


def commands(request: Request, node: Node) -> list[str]:
    return [" ".join(step.command[4:]) for step in mtu.steps(request, node)]


def both(value: int) -> Request:
    return Request((Want(A, value), Want(B, value)))


def vlans(outer: int, inner: int) -> tuple[Upper, ...]:
    return (Upper("rail0.5", "rail0", outer), Upper("rail0.5.6", "rail0.5", inner))


@pytest.mark.parametrize(("own", "outer", "inner", "value", "want"), [
    (1500, 1500, 1500, 4200, ["rail0 mtu 4200", "rail0.5 mtu 4200", "rail0.5.6 mtu 4200"]),
    (9000, 9000, 9000, 4200, ["rail0.5.6 mtu 4200", "rail0.5 mtu 4200", "rail0 mtu 4200"]),
    (9000, 9000, 1500, 4200, ["rail0.5 mtu 4200", "rail0 mtu 4200", "rail0.5.6 mtu 4200"]),
    (4200, 1500, 1500, 4200, ["rail0.5 mtu 4200", "rail0.5.6 mtu 4200"]),
    (4200, 4200, 4200, 4200, []),
])
def test_a_vlan_is_never_above_its_parent(own: int, outer: int, inner: int, value: int, want: list[str]) -> None:
    """host-setup 1.4: raise the parent first, lower the child first."""
    assert commands(Request((Want(A, value),)), node(port(mtu=own, vlans=vlans(outer, inner)))) == want


def test_a_bond_hands_its_mtu_to_its_members() -> None:
    above = (Upper("bond0.5", "bond0", 1500),)
    pair = node(bonded("rail0", 1500, 1500, vlans=above), bonded("rail1", 1500, 1500, vlans=above))
    assert commands(both(4200), pair) == ["bond0 mtu 4200", "bond0.5 mtu 4200"]
    drifted = node(bonded("rail0", 4200, 4200), bonded("rail1", 1500, 4200))
    assert commands(both(4200), drifted) == ["rail1 mtu 4200"]
    assert commands(Request((Want(A), Want("0000:99:00.0", 4200))), drifted) == []


def test_all_members_of_a_bond_want_the_same() -> None:
    pair = node(bonded("rail0", 1500, 1500), bonded("rail1", 1500, 1500))
    assert mtu.bond_problems(both(4200), pair) == []
    assert "a member of bond0 with rail1 (not listed)" in mtu.bond_problems(Request((Want(A, 4200),)), pair)[0].text()
    found = mtu.bond_problems(Request((Want(A, 4200), Want(B, 9000))), pair)
    assert [problem.got for problem in found] == [
        "a member of bond0 with rail1 (wants 9000)", "a member of bond0 with rail0 (wants 4200)"]
    assert mtu.bond_problems(both(4200), node(port(), port("rail1"))) == []


@pytest.mark.parametrize(("value", "asked", "text"), [
    (4191, 4096, "got netdev MTU 4191, which gives RDMA MTU 2048, wanted a netdev MTU of at least 4192, for RDMA"),
    (None, 4096, "got netdev MTU 1500, which gives RDMA MTU 1024, wanted a netdev MTU of at least 4192"),
    (9000, 2048, "wanted a netdev MTU of at least 2144 and at most 4191, for RDMA MTU 2048"),
])
def test_an_rdma_mtu_that_does_not_follow(value: int | None, asked: int, text: str) -> None:
    problem = mtu.rdma_problem(Want(A, value, asked), port())
    assert problem is not None and text in problem.text()


@pytest.mark.parametrize(("value", "asked"), [(4192, 4096), (9000, 4096), (None, 1024), (4200, None)])
def test_an_rdma_mtu_that_follows(value: int | None, asked: int | None) -> None:
    assert mtu.rdma_problem(Want(A, value, asked), port()) is None


def test_one_rdma_device_for_both_members_of_a_bond() -> None:
    first, second = bonded("rail0", 1500, 1500), dataclasses.replace(bonded("rail1", 1500, 1500), rdma_mtu_bytes=None)
    pair = node(first, second)
    assert mtu.rdma_port(pair, B) == first
    assert mtu.rdma_port(pair, A) == first
    assert mtu.rdma_port(pair, "0000:99:00.0") is None
    alone = Node((Device(B, ports=(second,)),))
    assert mtu.rdma_port(alone, B) == second


def test_verify() -> None:
    have = node(port(mtu=4200, vlans=(Upper("rail0.5", "rail0", 1500),)))
    assert "MTU of rail0.5 on rail0: got 1500, wanted 4200" in mtu.verify(Request((Want(A, 4200),)), have)[0].text()
    assert mtu.verify(Request((Want(A),)), have) == []
