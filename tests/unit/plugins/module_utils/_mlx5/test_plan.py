# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import (
    Device,
    Node,
    Port,
    Request,
    Step,
    Want,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import ConfigFile, Link, Networkd, Saved
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.plan import (
    dropin_path,
    dropin_text,
    effective_mtu,
)

A, B = "0000:03:00.0", "0002:03:00.0"
PENDING = "/run/aidc/networkd-reload.pending"
BROKEN = Problem("tool", "garbage", "its output", "hint")


def main_file(netdev: str) -> str:
    return f"/etc/systemd/network/20-{netdev}.network"


def build(
    mtu: int = 1500, saved: int | None = None, rdma: int | None = 1024, files: dict[str, Saved] | None = None,
    port: dict[str, t.Any] | None = None, networkd: dict[str, t.Any] | None = None, **node: t.Any,
) -> Node:
    """Two rails alike, but for the fields of ``port``, which are the second one's."""
    names = {A: "rail0", B: "rail1"}
    links = {name: Link(name, "configured", "routable", main_file(name)) for name in names.values()}
    store = {}
    for name in names.values():
        path = main_file(name)
        dropin = (ConfigFile(dropin_path(path), dropin_text(saved)),) if saved else ()
        store[path] = Saved(path, (ConfigFile(path, f"[Match]\nName={name}\n"), *dropin))
    store.update(files or {})
    daemon = dataclasses.replace(Networkd("active", links, store), **(networkd or {}))
    devices = []
    for number, (pci, name) in enumerate(names.items()):
        value, decider = effective_mtu(daemon.of(name))
        one = Port(1, state="ACTIVE", link_layer="Ethernet", netdev=name, mtu_bytes=mtu, max_mtu_bytes=9978,
                   rdma_mtu_bytes=rdma, saved_mtu_bytes=value, saved_mtu_file=decider, network_file=main_file(name))
        if number == 1:
            one = dataclasses.replace(one, **(port or {}))
        devices.append(Device(pci, rdma_device=f"mlx5_{number}", netdevs=(name,), ports=(one,)))
    return Node(tuple(devices), daemon, **node)


def request(*mtus: int, **fields: t.Any) -> Request:
    return Request(tuple(Want(pci, mtu) for pci, mtu in zip((A, B), mtus or (4200, 4200))), **fields)


def texts(problems: t.Sequence[Problem]) -> list[str]:
    return [problem.text() for problem in problems]


def commands(steps: t.Sequence[Step]) -> list[str]:
    return [" ".join(step.command) for step in steps]


# -- plan -----------------------------------------------------------------------------------------

def test_fresh_node() -> None:
    steps = plan.plan(request(), build())
    assert commands(steps) == [
        "ip link set dev rail0 mtu 4200",
        "ip link set dev rail1 mtu 4200",
        f"write {PENDING}",
        f"write {main_file('rail0')}.d/50-aidc-mtu.conf",
        f"write {main_file('rail1')}.d/50-aidc-mtu.conf",
        "networkctl reload",
        f"remove {PENDING}",
    ]
    assert [step.disruptive for step in steps] == ["link", "link", "none", "none", "none", "link", "none"]
    assert steps[3].text == dropin_text(4200)
    assert steps[5].wait_for == ("rail0", "rail1")
    assert steps[0].as_dict() == {"command": ["ip", "link", "set", "dev", "rail0", "mtu", "4200"],
                                  "disruptive": "link", "why": "MTU is 1500", "pci": A}


def test_configured_node_needs_nothing() -> None:
    assert plan.plan(request(), build(4200, 4200, 4096)) == []


def test_one_value_changed_behind_our_back_is_one_step() -> None:
    steps = plan.plan(request(), build(4200, 4200, 4096, port={"mtu_bytes": 1500}))
    assert commands(steps) == ["ip link set dev rail1 mtu 4200"]


def test_runtime_only() -> None:
    assert commands(plan.plan(request(persistent=False), build())) == [
        "ip link set dev rail0 mtu 4200", "ip link set dev rail1 mtu 4200"]


def test_persistent_only_does_not_reload_and_leaves_a_note() -> None:
    assert commands(plan.plan(request(4200, runtime=False), build())) == [
        f"write {PENDING}", f"write {main_file('rail0')}.d/50-aidc-mtu.conf"]
    noted = build(saved=4200, networkd={"reload_pending": True})
    assert plan.plan(request(4200, runtime=False), noted) == []


def test_a_reload_that_was_missed_is_made_up_for() -> None:
    node = build(4200, 4200, 4096, networkd={"reload_pending": True})
    assert commands(plan.plan(request(), node)) == ["networkctl reload", f"remove {PENDING}"]
    partly = build(4200, None, 4096, networkd={"reload_pending": True})
    assert commands(plan.plan(request(4200), partly)) == [
        f"write {main_file('rail0')}.d/50-aidc-mtu.conf", "networkctl reload", f"remove {PENDING}"]


def test_only_links_that_networkd_had_configured_are_waited_for() -> None:
    links = {"rail0": Link("rail0", "configuring", "degraded", main_file("rail0")),
             "rail1": Link("rail1", "configured", "routable", main_file("rail1"))}
    steps = plan.plan(request(), build(networkd={"links": links}))
    assert steps[-2].wait_for == ("rail1",)


def test_two_ports_of_one_file_make_one_drop_in() -> None:
    shared = "/etc/systemd/network/20-rails.network"
    links = {name: Link(name, "configured", "routable", shared) for name in ("rail0", "rail1")}
    node = build(networkd={"links": links}, files={shared: Saved(shared, (ConfigFile(shared, ""),))})
    assert plan.check(request(), node) == []
    assert [text for text in commands(plan.plan(request(), node)) if text.endswith(".conf")] == [
        f"write {shared}.d/50-aidc-mtu.conf"]


def test_ports_that_are_not_there_make_no_step() -> None:
    assert plan.plan(Request((Want("0000:99:00.0", 4200),)), build()) == []


def test_state_and_prediction() -> None:
    node = build()
    assert plan.state(request(4200), node) == [{"pci": A, "mtu_bytes": 1500, "saved_mtu_bytes": None}]
    assert plan.predict(request(4200), node) == [{"pci": A, "mtu_bytes": 4200, "saved_mtu_bytes": 4200}]
    assert plan.predict(request(4200, runtime=False), node)[0]["mtu_bytes"] == 1500
    assert plan.predict(request(4200, persistent=False), node)[0]["saved_mtu_bytes"] is None


# -- check ----------------------------------------------------------------------------------------

def test_a_sound_request() -> None:
    assert plan.check(request(), build()) == []
    assert plan.check(request(), build(4200, 4200, 4096)) == []


def test_unknown_and_double_and_malformed_addresses() -> None:
    wants = (Want("0000:99:00.0", 4200), Want(A, 4200), Want(A, 9000), Want("03:00.0", 4200))
    found = texts(plan.check(Request(wants), build(device_problems=(BROKEN,))))
    assert found == [
        f"0000:99:00.0: got no such mlx5 port, wanted an mlx5 port's PCI address (there is: {A}, {B})",
        f"{A}: got listed twice, wanted each PCI address once",
        "ports: got '03:00.0', wanted a PCI address such as 0000:03:00.0",
        BROKEN.text(),
    ]
    assert "there is: no mlx5 device" in texts(plan.check(request(4200), Node()))[0]


@pytest.mark.parametrize(("port", "got"), [
    ({"link_layer": "InfiniBand"}, "link layer InfiniBand, wanted Ethernet"),
    ({"excluded": "carries the default route"}, "a port that carries the default route"),
    ({"netdev": None}, "no netdev that can be told"),
    ({"mtu_bytes": None}, "no netdev that can be told"),
    ({"max_mtu_bytes": 4000}, "MTU 4200, wanted at most 4000, the device's maximum"),
    ({"rdma_mtu_bytes": None}, "no active_mtu of mlx5_1 in ibv_devinfo"),
])
def test_a_port_that_cannot_be_set(port: dict[str, t.Any], got: str) -> None:
    found = texts(plan.check(request(), build(port=port)))
    assert len(found) == 1
    assert B in found[0]
    assert got in found[0]


def test_limits() -> None:
    assert plan.check(request(352, persistent=False), build()) == []
    assert "at least 352" in texts(plan.check(request(351, persistent=False), build()))[0]
    assert plan.check(request(4200, 65000), build(port={"max_mtu_bytes": None})) == []
    assert "at least 1280 to be saved" in texts(plan.check(request(1279), build()))[0]
    assert plan.check(request(1280), build()) == []


def test_what_a_port_carries_must_be_known() -> None:
    assert texts(plan.check(request(), build(use_problems=(BROKEN,)))) == [BROKEN.text()]


def test_rdma_tool() -> None:
    broken = build(rdma=None, rdma_problems=(BROKEN,))
    assert texts(plan.check(request(), broken)) == [BROKEN.text()]
    assert plan.check(request(verify_rdma_mtu=False), broken) == []
    node = build()
    bare = dataclasses.replace(node, devices=tuple(
        dataclasses.replace(device, rdma_device=None) for device in node.devices))
    assert [f"{pci}: got no RDMA device" in text for pci, text in zip((A, B), texts(plan.check(request(), bare)))] == [
        True, True]


def test_owner_of_the_saved_value() -> None:
    off = build(networkd={"state": "inactive"})
    assert "systemd-networkd: got inactive, wanted active" in texts(plan.check(request(), off))[0]
    assert len(plan.check(request(), off)) == 1
    assert plan.check(request(persistent=False), off) == []
    unmanaged = build(networkd={"links": {"rail0": Link("rail0", "unmanaged")}})
    assert "no .network file (networkd: unmanaged)" in texts(plan.check(request(4200), unmanaged))[0]


def test_a_foreign_drop_in_that_wins() -> None:
    path = main_file("rail0")
    late = ConfigFile(f"{path}.d/90-site.conf", "[Link]\nMTUBytes=9000\n")
    node = build(files={path: Saved(path, (ConfigFile(path, ""), late))})
    assert late.path in texts(plan.check(request(), node))[0]
    # It is no hindrance while it says what is wanted.
    assert plan.check(request(9000), node) == []


def test_a_file_that_matches_other_links() -> None:
    shared = "/etc/systemd/network/20-rails.network"
    links = {name: Link(name, "configured", "routable", shared) for name in ("rail0", "rail1", "stor0")}
    node = build(networkd={"links": links}, files={shared: Saved(shared, (ConfigFile(shared, ""),))})
    found = texts(plan.check(request(4200, 9000), node))
    assert found == [f"{shared}: got a file that also matches rail1 (wants 9000), stor0 (not listed), wanted only "
                     "ports that want MTU 4200 (give each port its own .network file)"]


# -- verify ---------------------------------------------------------------------------------------

def test_verify_after_success() -> None:
    assert plan.verify(request(), build(4200, 4200, 4096)) == []


def test_verify_names_each_difference() -> None:
    node = build(4200, 4200, 4096, port={"mtu_bytes": 1500, "saved_mtu_bytes": None, "rdma_mtu_bytes": 4096})
    found = texts(plan.verify(request(), node))
    assert len(found) == 3
    assert f"netdev MTU of {B}: got 1500, wanted 4200" in found[0]
    assert f"saved MTU of {B}: got None, wanted 4200" in found[1]
    assert f"RDMA MTU of {B}: got 4096, wanted 1024 (derived from netdev MTU 1500)" in found[2]


def test_verify_without_rdma() -> None:
    node = build(4200, 4200, None, rdma_problems=(BROKEN,))
    assert plan.verify(request(verify_rdma_mtu=False), node) == []
    assert BROKEN.text() in texts(plan.verify(request(), node))


def test_verify_of_a_port_that_went_away() -> None:
    found = texts(plan.verify(request(4200), dataclasses.replace(build(), devices=())))
    assert [text.split(",")[0] for text in found] == [f"netdev MTU of {A}: got None", f"saved MTU of {A}: got None"]


# -- details --------------------------------------------------------------------------------------

def test_details() -> None:
    detail = plan.details(request(4200), build())[0]
    assert detail == {
        "pci": A, "rdma_device": "mlx5_0", "netdev": "rail0", "wanted_mtu_bytes": 4200, "mtu_bytes": 1500,
        "saved_mtu_bytes": None, "saved_mtu_file": None, "network_file": main_file("rail0"),
        "expected_rdma_mtu_bytes": 4096, "rdma_mtu_bytes": 1024, "bond": None, "vlans": [], "settings": {},
        "maximums": {},
    }
    assert plan.details(request(4200, runtime=False), build())[0]["expected_rdma_mtu_bytes"] == 1024
    gone = plan.details(request(4200, runtime=False), Node())[0]
    assert (gone["rdma_device"], gone["expected_rdma_mtu_bytes"]) == (None, 0)
