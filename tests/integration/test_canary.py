# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change goes over one host first; what it breaks there ends the run before the others are touched."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import snapshot
from tests.lab_plugin import Lab, Labs, run_lab

# Each test runs the fabric two or three times. Rows of `make faults` have a canary that fails, too.
pytestmark = pytest.mark.slow
NAME = "canary"
FABRIC = "playbooks/fabric.yml"
OTHERS = ("two", "three")
# A change of the netdev MTU on all hosts, which gives the same RDMA MTU.
CHANGE = ("-e", "mlx5_port_mtu_bytes=5000")
# Subnets that nobody else has.
WRONG = ("-e", '{"rail_network_subnets": ["10.99.0.0/24", "10.99.1.0/24"]}')


@pytest.fixture(scope="module")
def fleet(labs: Labs) -> Iterator[Lab]:
    with labs.during(NAME, "tests/integration/fleets/canary.yml") as lab:
        assert lab.play("playbooks/packages.yml").code == 0
        done = lab.play(FABRIC)
        assert done.code == 0, done.text[-4000:]
        # Nobody could be asked by the first host of a fresh fleet, and the others asked each other.
        assert "one: path of the rails 0, 1 not tested: no neighbour is known yet" in done.text
        paths = done.results("aidc.gpu_cluster.path_probe")
        assert {host for host in OTHERS if paths[host].get("paths")} == set(OTHERS)
        yield lab


def test_what_breaks_the_path_of_the_canary_leaves_the_others_untouched(fleet: Lab) -> None:
    before = {host: fleet.snapshot(host) for host in OTHERS}
    done = fleet.play(FABRIC, *WRONG)
    assert done.code != 0
    assert done.stats["one"]["failures"] == 1 and done.changed().keys() == {"one"}
    assert "one rail 1 (enp193s0f0np0, 10.99.1.1) to two (10.35.1.2): got no answer, " \
        "wanted 4200 bytes unfragmented" in done.text
    for host in OTHERS:
        assert snapshot.difference(before[host], fleet.snapshot(host)) == []
    # With the right values the canary goes back; now no neighbour is reached before, and so nobody can be asked.
    done = fleet.play(FABRIC)
    assert done.code == 0, done.text[-4000:]
    assert done.changed().keys() == {"one"}
    assert fleet.play(FABRIC).changed() == {}


def test_a_path_that_was_small_before_does_not_stop_the_change(fleet: Lab) -> None:
    run_lab("fault", "set", "leaf-mtu", "leaf1", "rail=1", "mtu=1500", name=NAME)
    try:
        done = fleet.play(FABRIC, *CHANGE)
        # The canary may go on; between two hosts that this run has configured full packets must pass.
        assert done.code != 0 and done.changed().keys() == {"one", *OTHERS}
        assert "two rail 1 (enp193s0f0np0, 10.35.1.2) to three (10.35.1.3): got 1500 bytes at most, " \
            "wanted 5000 bytes unfragmented" in done.text
        assert "one rail 1" not in done.text and "two rail 0" not in done.text
    finally:
        run_lab("fault", "clear", name=NAME)
    assert fleet.play(FABRIC, *CHANGE).changed() == {}


def test_another_canary_and_a_neighbour_that_is_gone(fleet: Lab) -> None:
    """Neighbours that are on record but do not answer before the change need not answer after it."""
    for host in ("one", "three"):
        fleet.inside(host, "ip", "link", "set", "enp65s0f0np0", "down")
    try:
        done = fleet.play(FABRIC, "-e", '{"fabric_canaries": ["two"]}', "--limit", "two")
        assert done.code == 0, done.text[-4000:]
        assert "two: path of the rails 0 not tested" in done.text
    finally:
        for host in ("one", "three"):
            fleet.inside(host, "ip", "link", "set", "enp65s0f0np0", "up")


def test_a_canary_that_fails_in_a_role_ends_the_run_too(fleet: Lab) -> None:
    fleet.inside("one", "mv", "/usr/sbin/dcb", "/usr/sbin/dcb.away")
    try:
        done = fleet.play(FABRIC, "-e", "rdma_stack_mode=off", "-e", "roce_qos_dscp=28", *CHANGE)
        assert done.code != 0 and done.stats["one"]["failures"] == 1
        assert done.changed() == {} and not {*OTHERS} & set(done.results("aidc.gpu_cluster.roce_qos"))
    finally:
        fleet.inside("one", "mv", "/usr/sbin/dcb.away", "/usr/sbin/dcb")
