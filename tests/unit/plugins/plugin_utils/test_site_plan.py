# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.site_plan import Cell, compress, document, table

STEP = {"command": ["ip", "link", "set"], "disruptive": "link", "why": "MTU is 1500"}
MODULE = {"changed": True, "commands": [["ip", "link", "set"], ["write", "/etc/x"]],
          "steps": [STEP, {**STEP, "disruptive": "none"}]}


def cell(*results: dict[str, t.Any]) -> Cell:
    found = Cell()
    for result in results:
        found.add(result)
    return found


def test_commands_are_counted_and_steps_that_disturb() -> None:
    found = cell(MODULE)
    assert (found.changes, dict(found.disruptive)) == (2, {"link": 1})
    assert found.commands == [["ip", "link", "set"], ["write", "/etc/x"]]


def test_a_task_without_commands_is_one_change_and_an_unchanged_one_none() -> None:
    assert cell({"changed": True}, {"changed": False, "commands": []}).changes == 1
    # Planned and held back: no change, but the reader must know why.
    held = cell({"changed": False, "deferred": [{"rail": 0, "netdev": "ens1", "holders": ["python3 (7)"]}]})
    assert (held.changes, held.deferred) == (0, ["rail 0; netdev ens1; holders python3 (7)"])
    steps = [["dcb", "pfc", "set"], ["dcb", "app", "add"], ["write", "/sys/x", "104"]]
    held = cell({"changed": False, "deferred": [{"pci": "0000:03:00.0", "netdev": "ens1", "steps": steps,
                                                 "holders": ["Slurm job 4242 step 0 (pid 7 x) holds mlx5_0"]}]})
    assert held.deferred == ["pci 0000:03:00.0; netdev ens1; steps 3 (dcb, write); "
                             "holders Slurm job 4242 step 0 (pid 7 x) holds mlx5_0"]


def test_each_item_of_a_loop_counts() -> None:
    found = cell({"changed": True, "results": [{"changed": True}, {"changed": False}, MODULE]})
    assert (found.changes, dict(found.disruptive)) == (3, {"link": 1})


def test_what_is_required_afterwards() -> None:
    assert cell({"changed": False, "reset_required": True, "reboot_required": False, "power_cycle_required": True,
                 "restart_required": "no boolean"}).afterwards == ["reset", "power cycle"]


@pytest.mark.parametrize("message", [
    "h1: MTU of the rails: unpredictable until role rdma_stack has installed ibv_devinfo; more",
    ["other", "h1: MTU: unpredictable until role rdma_stack has installed ibv_devinfo"],
])
def test_what_cannot_be_predicted(message: t.Any) -> None:
    assert cell({"changed": False, "msg": message}).unpredictable == [
        "unpredictable until role rdma_stack has installed ibv_devinfo"]


@pytest.mark.parametrize("result", [
    {}, {"msg": None}, {"results": []}, {"results": "x"}, {"steps": [1, None]}, {"deferred": {}},
    {"changed": False, "commands": [["ip"]]}, {"steps": [{"disruptive": "none"}, {}]},
])
def test_results_of_other_modules_add_nothing(result: dict[str, t.Any]) -> None:
    assert cell(result).idle


def test_failure() -> None:
    found = Cell()
    found.fail({"msg": "One or more items failed", "results": [{"failed": True, "msg": "got x"}, {"msg": "fine"}]})
    found.fail({})
    assert found.failed == ["got x", "failed without a message"]


@pytest.mark.parametrize(("hosts", "text"), [
    ([], ""), (["gb1"], "gb1"), (["gb1", "gb2", "gb3", "l40s1"], "gb[1:3],l40s1"), (["gb9", "gb10"], "gb[9:10]"),
    (["gb08", "gb09", "gb10", "gb12"], "gb[08:10],gb12"), (["gb1", "gb3"], "gb1,gb3"), (["a", "b"], "a,b"),
    (["gb2", "gb1"], "gb2,gb1"), (["n1-r1", "n1-r2"], "n1-r[1:2]"), (["gb01", "gb2"], "gb01,gb2"),
])
def test_names_in_the_words_of_limit(hosts: list[str], text: str) -> None:
    assert compress(hosts) == text


def test_ansible_reads_the_names_back() -> None:
    from ansible.inventory.data import InventoryData
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.inventory.advanced_host_list import InventoryModule

    # The ranges of a host list are those of an inventory; it is Ansible's own expansion that is asked.
    names = [f"gb{number:02d}" for number in range(8, 13)]
    plugin, data = InventoryModule(), InventoryData()
    plugin._load_name = "advanced_host_list"
    plugin.parse(data, DataLoader(), compress(names) + ",")
    assert sorted(data.hosts) == names


CELLS = {
    ("h1", "rdma_stack"): cell({"changed": True}),
    ("h1", "mlx5_port"): cell(MODULE, {"changed": False, "reset_required": True}),
    ("h2", "rdma_stack"): cell({"changed": True}),
    ("h2", "mlx5_port"): cell({"msg": "unpredictable until role rdma_stack has installed ibv_devinfo"}),
    ("h3", "rdma_stack"): Cell(),
}


def test_table() -> None:
    assert table(CELLS, ["h1", "h2", "h3", "h4"], {"h4": "timed out"}) == [
        "HOSTS   ROLE        CHANGES  DISRUPTIVE  AFTERWARDS  REMARKS",
        "h[1:2]  rdma_stack  1        -           -           -",
        "h1      mlx5_port   2        link 1      reset       -",
        "h2      mlx5_port   -        -           -           unpredictable",
        "h2: mlx5_port: unpredictable until role rdma_stack has installed ibv_devinfo",
        "h4: unreachable: timed out",
        "h3: nothing to do",
        "4 hosts, 2 with changes, 1 with disruptive steps (link 1), 1 to reset or reboot afterwards, "
        "1 with unpredictable parts, 0 failed, 1 unreachable",
    ]


def test_document_names_every_host() -> None:
    data = document(CELLS, ["h1", "h2", "h3", "h4"], {"h4": "timed out"}, "2026-01-01T00:00:00Z")
    assert {host: (sorted(entry["roles"]), entry["unreachable"]) for host, entry in data["hosts"].items()} == {
        "h1": (["mlx5_port", "rdma_stack"], None), "h2": (["mlx5_port", "rdma_stack"], None), "h3": ([], None),
        "h4": ([], "timed out")}
    assert data["hosts"]["h1"]["roles"]["mlx5_port"]["disruptive"] == {"link": 1}
    assert data["hosts"]["h1"]["roles"]["mlx5_port"]["commands"] == MODULE["commands"]
