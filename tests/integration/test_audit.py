# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit on lab hosts: green after fabric.yml, then raw changes behind its back, each named with host and rail."""
from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import Lab, Labs, run_lab

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow

FLEET = "tests/integration/fleets/audit.yml"
NAME = "audit"
RAILS = ["enp65s0f0np0", "enp193s0f0np0"]
# What the lab's inventory leaves open on purpose.
QUIET = {"switch-untold", "nccl-tc-unset"}
Seen = set[tuple[str, tuple[str, ...], int | None]]


class Site:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.code = 0

    def audit(self, *argv: str) -> Seen:
        """Findings as (rule, hosts, rail) from the report on the controller."""
        play = self.lab.play("playbooks/audit.yml", *argv)
        self.code, self.text = play.code, play.text
        assert play.changed() == {}
        report = json.loads((self.lab.inventory / ".state" / "audit" / "audit.json").read_text(encoding="utf-8"))
        self.findings: list[dict[str, Any]] = [one for one in report["findings"] if one["id"] not in QUIET]
        return {(one["id"], tuple(one["hosts"]), one["rail"]) for one in self.findings}

    def shell(self, host: str, text: str) -> None:
        self.lab.inside(host, "sh", "-c", text)


@pytest.fixture(scope="module")
def site(labs: Labs) -> Site:
    lab = labs(NAME, FLEET)
    for playbook in ("playbooks/packages.yml", "playbooks/fabric.yml"):
        done = lab.play(playbook)
        assert done.code == 0, done.text[-4000:]
    return Site(lab)


def test_a_site_as_fabric_yml_made_it_has_no_findings(site: Site) -> None:
    assert site.audit() == set()
    assert site.code == 0


# (host, raw change, how it goes back, finding)
CHANGES: list[tuple[str, str, str, tuple[str, int | None]]] = [
    ("au1", f"ip link set {RAILS[0]} mtu 1500", f"ip link set {RAILS[0]} mtu 4200", ("mtu-running", 0)),
    ("au2", f"dcb pfc set dev {RAILS[1]} prio-pfc all:off 4:on", f"dcb pfc set dev {RAILS[1]} prio-pfc all:off 3:on",
     ("pfc-priority", 1)),
    ("au1", f"dcb app add dev {RAILS[1]} dscp-prio 26:0", f"dcb app add dev {RAILS[1]} dscp-prio 26:3",
     ("dscp-priority", 1)),
    ("au3", f"ethtool -A {RAILS[0]} rx on tx on", f"ethtool -A {RAILS[0]} rx off tx off", ("global-pause", 0)),
    ("au3", f"echo 0 > /proc/sys/net/ipv4/conf/{RAILS[1]}/arp_ignore",
     f"echo 1 > /proc/sys/net/ipv4/conf/{RAILS[1]}/arp_ignore", ("arp-flux", 1)),
    ("au2", f"f=/etc/systemd/network/20-{RAILS[0]}.network.d/60-aidc-rail.conf; cp $f /root/kept; "
            "sed -i 's/^ConfigureWithoutCarrier=yes$//; s/^MTUBytes=4200$/MTUBytes=1500/' $f",
     f"cp /root/kept /etc/systemd/network/20-{RAILS[0]}.network.d/60-aidc-rail.conf", ("carrier-loss", 0)),
    ("au3", "d=/sys/kernel/config/rdma_cm/mlx5_0; mkdir $d; echo 0 > $d/ports/1/default_roce_tos; rmdir $d",
     "d=/sys/kernel/config/rdma_cm/mlx5_0; mkdir $d; echo 104 > $d/ports/1/default_roce_tos; rmdir $d", ("cm-tos", 0)),
]


def test_raw_changes_at_once_are_each_named_with_host_and_rail(site: Site) -> None:
    for host, change, _back, _finding in CHANGES:
        site.shell(host, change)
    wanted = {(rule, (host,), rail) for host, _change, _back, (rule, rail) in CHANGES}
    # The same line of the file is two findings: what is saved is wrong, and a flap will cost the address.
    wanted.add(("mtu-saved", ("au2",), 0))
    # And the boot tool says of each of them that it is not as its intent.
    wanted |= {("boot-drift", (host,), None) for host in ("au1", "au2", "au3")}
    assert site.audit() == wanted
    assert site.code == 2 and "arp-flux: au3 rail 1: got arp_ignore, arp_announce 0, 2, wanted 1, 2" in site.text
    # A limit says who is read anew; all are audited.
    for host, _change, back, _finding in CHANGES:
        site.shell(host, back)
    assert site.audit("--limit", "au2") == {entry for entry in wanted if entry[1] != ("au2",)}
    assert site.audit() == set() and site.code == 0


def test_a_leaf_that_drops_large_packets_is_seen_between_sound_ends(site: Site) -> None:
    run_lab("fault", "set", "leaf-mtu", "leaf1", "rail=1", name=NAME)
    try:
        seen = site.audit()
    finally:
        run_lab("fault", "clear", "leaf-mtu", "leaf1", name=NAME)
    assert {(rule, rail) for rule, _hosts, rail in seen} == {("path-mtu", 1)}
    assert site.findings[0]["got"] == "1500 bytes pass unfragmented"


def test_a_duplicate_address_and_a_host_that_is_gone(site: Site) -> None:
    site.shell("au3", f"ip addr add 10.39.0.1/24 dev {RAILS[0]}")
    seen = site.audit()
    site.shell("au3", f"ip addr del 10.39.0.1/24 dev {RAILS[0]}")
    assert ("address-duplicate", ("au1", "au3"), 0) in seen and ("gid-several", ("au3",), 0) in seen
    assert {rule for rule, _hosts, _rail in seen} <= {
        "address-duplicate", "gid-several", "path-dead", "path-mtu", "boot-drift"}
    (site.lab.inventory / ".state" / "mlx5_info" / "au3.json").unlink()
    assert site.audit("-e", "fabric_audit_mode=verify") >= {("record-missing", ("au3",), None)}
    assert site.audit() == set()
