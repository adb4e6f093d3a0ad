# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.launch import Host, Job
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import render

PCI = "0000:41:00.0"
RAIL = {"rail": 0, "pci": PCI, "address": "192.0.2.1/31", "gateway": "192.0.2.0", "destinations": ["198.51.100.0/24"]}


def use(name: str, owner: str = "networkd", **given: t.Any) -> render.Rendered:
    rendered = render.role(name, given, owner)
    return render.Rendered(render.plain(rendered.settings), rendered.files)


def test_files_of_each_owner() -> None:
    paths = {}
    for owner in ("networkd", "netplan", "networkmanager"):
        rendered = use("rail_network", owner, rails=[RAIL])
        assert rendered.settings["owner"] == owner
        paths[owner] = [path for path, _text in rendered.files]
        for path, text in rendered.files:
            assert f"<netdev:{PCI}>" in text, path
    conf = "/etc/sysctl.d/90-aidc-rails.conf"
    assert paths == {
        "networkd": ["/etc/systemd/network/05-aidc-rail0.network", conf],
        "netplan": ["/etc/netplan/90-aidc-rails.yaml", conf],
        "networkmanager": ["/etc/NetworkManager/conf.d/90-aidc-rails.conf",
                           "/etc/NetworkManager/system-connections/aidc-rail0.nmconnection", conf]}


def test_an_owner_that_the_host_names_wins() -> None:
    rendered = render.role("rail_network", {"rails": [RAIL], "owner": "netplan"}, "networkd")
    assert rendered.settings["owner"] == "netplan"


def test_rules_and_routes_are_told() -> None:
    (rail,) = use("rail_network", rails=[RAIL]).settings["rails"]
    assert rail["rules"] == ["priority 1001 from 192.0.2.1 table 101"]
    assert rail["routes"] == ["192.0.2.0/31 table 101", "198.51.100.0/24 via 192.0.2.0 table 101"]


def test_settings_of_ports() -> None:
    (port,) = use("mlx5_port", ports=[{"pci": PCI, "pause_rx": False, "rdma_mtu_bytes": 4096}]).settings["ports"]
    assert port["settings"] == {"pause_rx": False} and port["rdma_mtu_bytes"] == 4096
    found = use("mlx5_nvconfig", devices=[{"pci": PCI}], parameters={"LINK_TYPE_P1": "ETH"}, bmc_powered=True).settings
    assert found == {"bmc_powered": True, "next_boot": {PCI: {"LINK_TYPE_P1": "ETH"}}}
    (port,) = use("roce_qos", ports=[{"pci": PCI}]).settings["ports"]
    assert port["state"]["pfc"] == [3] and port["state"]["dscp_map"][26] == 3 and port["state"]["cm_tos"] == 104
    assert use("roce_gid", ports=[{"pci": PCI}]).settings["version"] == "v2"


@pytest.mark.parametrize(("name", "given", "text"), [
    ("rail_network", {"rails": [{**RAIL, "address": "x"}]}, "rail 0: address: got 'x'"),
    ("rail_network", {"rails": [{**RAIL, "gateway": "192.0.2.9"}]}, "rail 0: gateway: got 192.0.2.9"),
    ("rail_network", {"rails": [{"rail": 0}]}, "missing required arguments: "),
    ("mlx5_port", {"ports": [{"pci": PCI, "mtu_bytes": "big"}]}, "mtu_bytes"),
    ("mlx5_nvconfig", {"devices": [{"pci": PCI}], "parameters": {"bad name": 1}}, f"{PCI} bad name: got 1"),
    ("roce_qos", {"ports": [{"pci": PCI}], "dscp": 64}, f"dscp of {PCI}: got 64, wanted 0 to 63"),
])
def test_what_the_module_would_refuse(name: str, given: dict[str, t.Any], text: str) -> None:
    with pytest.raises(render.RenderError, match=text.replace("(", r"\(")):
        use(name, **given)


def job(**more: t.Any) -> Job:
    hosts = tuple(Host(name, name, host_keys=(f"<host-key:{name}>",)) for name in ("a", "b"))
    return Job(hosts, "p-rendered", "~/.aidc/runs/p-rendered", "ops", 4, environment={"NCCL_ALGO": "RING"}, **more)


def test_a_pool() -> None:
    rendered = render.pool(job(), {"min_busbw_gbps": 200})
    assert rendered.settings["ranks"] == 8
    assert set(rendered.settings["command"]) == {"Open MPI 4", "Open MPI 5"}
    assert "--prtemca" in rendered.settings["command"]["Open MPI 5"]
    assert rendered.settings["environment"]["NCCL_ALGO"] == "RING"
    assert [path for path, _text in rendered.files] == [f"~/.aidc/runs/p-rendered/{name}"
                                                        for name in ("hosts", "known_hosts", "ssh_config")]
    with pytest.raises(render.RenderError, match="processes_per_host"):
        render.pool(job(processes_per_host=3), {})


def test_plain() -> None:
    assert render.plain({"a": (1, frozenset({2})), "b": {3}}) == {"a": [1, [2]], "b": [3]}
