# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import model
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo.model import Fabric, Nic, Route

GOOD = Fabric("Completed", "Success", 1, "3f1b2c4d-0000-4000-8000-00000000000a")


def test_all_gpus_in_one_domain() -> None:
    assert model.nvlink_domain([GOOD, GOOD]) == ({"cluster_uuid": GOOD.cluster_uuid, "clique_id": 1}, None)


@pytest.mark.parametrize(("gpus", "why"), [
    ([], "shows no GPU"), ([Fabric("N/A", "N/A")], "State N/A"), ([Fabric()], "State N/A"),
    ([GOOD, Fabric("In Progress", "N/A")], "GPU 1: fabric state In Progress"),
    ([Fabric("Completed", "Insufficient Resources", 0, "x")], "status Insufficient Resources"),
    ([Fabric("Completed", "Success", 0, "00000000-0000-0000-0000-000000000000")], "GPU 0: no cluster UUID"),
    ([Fabric("Completed", "Success", 32766)], "GPU 0: no cluster UUID"),
    ([GOOD, Fabric("Completed", "Success", 2, GOOD.cluster_uuid)], "name several domains"),
])
def test_no_domain_has_a_reason(gpus: list[Fabric], why: str) -> None:
    domain, said = model.nvlink_domain(gpus)
    assert domain is None and said is not None and why in said


def test_two_default_routes_are_one_finding() -> None:
    routes = [Route(4, 0, "eth0", "192.0.2.254", 100), Route(4, 1, "eth1", "198.51.100.254", 200), Route(6, 0, "eth0")]
    found = model.route_findings(routes)
    assert [problem.object for problem in found] == ["default route (IPv4)"]
    assert found[0].got == "eth0 via 192.0.2.254 metric 100; eth1 via 198.51.100.254 metric 200"


def test_next_hops_of_one_route_and_one_route_of_each_family_are_none() -> None:
    assert model.route_findings([Route(4, 0, "eth0", "192.0.2.254"), Route(4, 0, "eth1", "192.0.2.253"),
                                 Route(6, 0, "eth0")]) == []


def test_nics_that_do_not_work() -> None:
    found = model.nic_findings([
        Nic("0000:03:00.0", "15b3:1021", driver="mlx5_core"), Nic("0000:04:00.0", "15b3:1021"),
        Nic("0000:05:00.0", "15b3:0218"), Nic("0000:03:00.2", "15b3:101e", is_vf=True)])
    assert [(one.object, one.got) for one in found] == [
        ("NIC 0000:04:00.0", "no driver"), ("NIC 0000:05:00.0", "15b3:0218, flash recovery")]


def test_names_are_added() -> None:
    assert model.Gpu("0008:01:00.0", "10de:2941", 0).as_data()["name"] == "GB200"
    assert model.Nic("0000:03:00.0", "15b3:a2dc").as_data()["kind"] == "bluefield"
