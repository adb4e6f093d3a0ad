# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices in use: no link goes down, the holder is named, other ports are set, and the next run makes up for it."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.users import user
from tests.lab_plugin import Lab, Labs, Play

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow

HOST, FLEET = "ibusy", "tests/integration/fleets/idle.yml"
RAILS = ["enp65s0f0np0", "enp193s0f0np0"]
PCIS = ["0000:41:00.0", "0000:c1:00.0"]
UVERBS = ["/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"]
NAMES = {name: f"aidc.gpu_cluster.{name}" for name in ("mlx5_port", "roce_qos", "rail_network", "roce_gid")}


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Iterator[Lab]:
    with labs.during("idle", FLEET) as found:
        done = found.play("playbooks/packages.yml")
        assert done.code == 0, done.text[-4000:]
        yield found


def fabric(lab: Lab, *argv: str, **more: Any) -> Play:
    return lab.play("playbooks/fabric.yml", "--limit", HOST, "-e", json.dumps(more), *argv)


def result(play: Play, name: str) -> dict[str, Any]:
    assert play.code == 0, play.text[-6000:]
    found: dict[str, Any] = play.results(NAMES[name])[HOST]
    return found


def downs(lab: Lab) -> list[int]:
    """How often each rail has lost its link, as the kernel counts."""
    text = lab.inside(HOST, "cat", *(f"/sys/class/net/{rail}/carrier_down_count" for rail in RAILS)).stdout
    return [int(line) for line in text.split()]


def pfc(lab: Lab, rail: str) -> list[bool]:
    found: list[bool] = json.loads(lab.inside(HOST, "dcb", "-j", "pfc", "show", "dev", rail).stdout)["prio_pfc"]
    return found


def test_a_bare_host_in_use_is_left_alone_and_the_run_goes_on(lab: Lab) -> None:
    """All rails wait: no address, no MTU, no PFC; every role says so and none fails."""
    before = downs(lab)
    with user(lab, HOST, "all_reduce_perf", UVERBS[0], job=4242) as job:
        predicted = fabric(lab, "--check")
        real = fabric(lab)
        # What mlx5_port would do cannot be told before its tools are there.
        for name in ("rail_network", "roce_qos"):
            for key in ("commands", "deferred", "changed"):
                assert result(predicted, name)[key] == result(real, name)[key], (name, key)
        assert result(real, "rail_network")["commands"] == []
        # The step has the whole node; the device that it holds is in use by a connection.
        wanted = [[f"{job.words} has connections on mlx5_0"], [f"{job.words} runs on this node"]]
        for name in ("rail_network", "roce_qos"):
            deferred = result(real, name)["deferred"]
            assert [entry["holders"] for entry in deferred] == wanted, name
            assert [(entry["pci"], entry["netdev"]) for entry in deferred] == list(zip(PCIS, RAILS))
        assert f"{HOST}: {RAILS[0]} waits for: {job.words} has connections on mlx5_0" in real.text
    assert downs(lab) == before


def test_the_next_run_does_all(lab: Lab) -> None:
    before = downs(lab)
    real = fabric(lab)
    for name in ("rail_network", "mlx5_port", "roce_qos"):
        assert result(real, name)["deferred"] == []
    assert [pfc(lab, rail)[3] for rail in RAILS] == [True, True]
    # PFC has let each link go once, which shows that the counter counts.
    assert all(now > old for old, now in zip(before, downs(lab)))
    again = fabric(lab)
    assert (again.code, again.changed()) == (0, {})


def test_one_rail_in_use_waits_and_the_other_is_set(lab: Lab) -> None:
    for rail in RAILS:
        lab.inside(HOST, "sh", "-c", f"dcb pfc set dev {rail} prio-pfc all:off; sleep 3; ethtool -G {rail} rx 512")
    before = downs(lab)
    rings = {"mlx5_port_rx_ring_entries": 4096}
    with user(lab, HOST, "ib_write_bw", UVERBS[1]) as job:
        real = fabric(lab, **rings)
        holder = f"{job.words} has connections on mlx5_1"
        for name, step in (("mlx5_port", "ethtool"), ("roce_qos", "dcb")):
            found = result(real, name)
            assert found["rdma_users_known"] is True
            (entry,) = found["deferred"]
            assert (entry["pci"], entry["netdev"], entry["holders"]) == (PCIS[1], RAILS[1], [holder])
            assert {command[0] for command in entry["steps"]} == {step}
            assert found["commands"] and not any(RAILS[1] in command for command in found["commands"])
        assert downs(lab)[1] == before[1]
        assert (pfc(lab, RAILS[0])[3], pfc(lab, RAILS[1])[3]) == (True, False)
        again = fabric(lab, **rings)
        assert (again.changed(), result(again, "roce_qos")["deferred"][0]["holders"]) == ({}, [holder])
        strict = fabric(lab, roce_qos_mode="verify", **rings)
        assert strict.code != 0 and "would run: dcb pfc set" in strict.text
    done = result(fabric(lab, **rings), "roce_qos")
    assert [command[:3] for command in done["commands"]] == [["dcb", "pfc", "set"]]
    assert downs(lab)[1] > before[1]


def test_a_process_that_only_reads_is_a_holder_without_rdma_too(lab: Lab) -> None:
    """The program rdma is away: what has the device open is seen, and that not all is known is said."""
    lab.inside(HOST, "sh", "-c", f"dcb pfc set dev {RAILS[0]} prio-pfc all:off; sleep 3; mv /usr/sbin/rdma /root/")
    before = downs(lab)
    try:
        with user(lab, HOST, "python_train", UVERBS[0]) as job:
            found = result(fabric(lab), "roce_qos")
            assert found["deferred"][0]["holders"] == [f"{job.words} holds mlx5_0"]
            assert found["rdma_users_known"] is False
        assert downs(lab) == before
    finally:
        lab.inside(HOST, "mv", "/root/rdma", "/usr/sbin/rdma")


@pytest.mark.parametrize(("policy", "waits"), [("never", True), ("force", False)])
def test_one_variable_for_all_roles(lab: Lab, policy: str, waits: bool) -> None:
    with user(lab, HOST, "ib_write_bw", UVERBS[0]):
        found = result(fabric(lab, disruption_policy=policy), "roce_qos")
    assert bool(found["deferred"]) is waits and bool(found["commands"]) is not waits
    assert pfc(lab, RAILS[0])[3] is not waits
