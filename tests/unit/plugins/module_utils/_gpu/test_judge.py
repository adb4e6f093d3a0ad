# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each finding, and beside it a similar state that is none."""
from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import judge
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.judge import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import (
    Driven,
    Driver,
    Fabric,
    Mode,
    Pci,
    Remap,
    Smi,
    Temperature,
    Unit,
    Wanted,
)

UUID = "3f1b2c4d-0000-4000-8000-00000000000a"
ZERO = "00000000-0000-0000-0000-000000000000"
ONE, TWO = "0008:01:00.0", "0009:01:00.0"
GOOD = Fabric("Completed", "Success", 1, UUID, {"Summary": "Healthy", "Bandwidth": "Full"})
GB200, L40S, H100, OTHER = "10de:2941", "10de:26b9", "10de:2330", "10de:27b8"
FM = "nvidia-fabricmanager.service"


def node(pci_id: str = GB200, first: dict[str, t.Any] | None = None, bus: dict[str, t.Any] | None = None,
         **changes: t.Any) -> Node:
    """Two GPUs; ``first`` and ``bus`` change what nvidia-smi and the bus say of the first."""
    pcis = tuple(replace(Pci(pci, pci_id, 0, "nvidia", True), **(bus or {}) if pci == ONE else {})
                 for pci in (ONE, TWO))
    smi = tuple(replace(Smi(pci, "x", f"GPU-{pci}", fabric=GOOD), **(first or {}) if pci == ONE else {})
                for pci in (ONE, TWO))
    links: dict[str, dict[int, float | None]] = {f"GPU-{pci}": {number: 50.0 for number in range(18)}
                                                for pci in (ONE, TWO)}
    made = Node(pcis, (Driven(ONE), Driven(TWO)), smi, None, Driver("580.1.1", is_loaded=True), nvlinks=links,
                kinds={one.pci: judge.kind(one, Wanted()) for one in pcis})
    return replace(made, **changes)


def found(made: Node, **wanted: t.Any) -> list[tuple[str, str]]:
    return [(one.object, one.got) for one in judge.findings(made, Wanted(**wanted))]


def test_a_good_node() -> None:
    assert found(node(), gpu_count=2, gpu_pci_ids=(GB200,)) == []


@pytest.mark.parametrize(("wanted", "objects"), [
    ({"gpu_count": 4}, ["GPUs on the PCI bus"]), ({"gpu_count": 1}, ["GPUs on the PCI bus"]), ({"gpu_count": 2}, []),
    ({"gpu_pci_ids": (L40S,)}, [f"GPU {ONE}", f"GPU {TWO}"]), ({"gpu_pci_ids": (L40S, GB200)}, []),
    ({"memory_total_mib": 189471}, [f"memory of GPU {ONE}"]), ({"memory_total_mib": 46068}, []),
])
def test_the_class(wanted: dict[str, t.Any], objects: list[str]) -> None:
    assert [one for one, _got in found(node(first={"memory_total_mib": 46068}), **wanted)] == objects


@pytest.mark.parametrize(("bus", "got"), [
    ({"answers": False}, ["configuration space of all ones"]), ({"answers": None}, []), ({"answers": True}, []),
])
def test_a_gpu_that_does_not_answer(bus: dict[str, t.Any], got: list[str]) -> None:
    assert [text for _one, text in found(node(bus=bus))] == got


def test_another_driver_has_it() -> None:
    """One that nouveau or a virtual machine has is not looked for in the driver's list."""
    made = node(bus={"driver": "vfio-pci"}, driven=(Driven(TWO),), smi=(Smi(TWO, fabric=GOOD, uuid=f"GPU-{TWO}"),))
    assert found(made) == [(f"GPU {ONE}", "driver vfio-pci")]
    # Without a loaded driver that is said once, and not for each GPU.
    assert found(replace(made, driver=Driver(), driven=None, smi=None)) == []


def test_bus_driver_and_tool_must_name_the_same() -> None:
    second = Smi(TWO, fabric=GOOD, uuid=f"GPU-{TWO}")
    assert found(node(driven=(Driven(TWO),), smi=(second,))) == [(f"GPU {ONE}", "not in /proc/driver/nvidia/gpus")]
    assert found(node(smi=(second,))) == [(f"GPU {ONE}", "not among the 1 of nvidia-smi")]
    assert found(node(smi=(second,), driven=None)) == [(f"GPU {ONE}", "not among the 1 of nvidia-smi")]
    assert found(node(smi=None)) == [], "nvidia-smi said nothing: a problem, and no word on a GPU"
    assert found(node(smi=(second,), driven=(Driven(ONE, excluded=True), Driven(TWO)))) == [
        (f"GPU {ONE}", "excluded (NVreg_ExcludedGpus)")]


@pytest.mark.parametrize("state", [6, 9, 15, 18])
def test_the_tool_names_a_fault(state: int) -> None:
    assert [one for one, _got in found(node(smi=None, smi_state=state))] == ["nvidia-smi"]


@pytest.mark.parametrize(("first", "got"), [
    ({"ecc": Mode("Disabled", "Enabled")}, ["Disabled, Enabled after a reset"]),
    ({"ecc": Mode("Enabled", "Enabled")}, []), ({"ecc": Mode("Enabled", None)}, []), ({"ecc": Mode()}, []),
    ({"mig": Mode("Disabled", "Enabled")}, ["Disabled, Enabled after a reset"]), ({"mig": Mode()}, []),
    ({"remap": Remap(0, 4, True, False)}, ["row remapping pending"]), ({"remap": Remap(0, 4, False, False)}, []),
    ({"remap": Remap(0, 4, False, True)}, ["row remapping failed"]), ({"remap": Remap()}, []),
    ({"bar1_total_mib": 256}, ["256 MiB"]), ({"bar1_total_mib": 65536}, []), ({"bar1_total_mib": None}, []),
    ({"reset_required": True}, ["reset required"]), ({"reset_required": False}, []),
    ({"recovery_action": "Node Reboot Required"}, ["recovery action Node Reboot Required"]),
    ({"recovery_action": "None"}, []),
])
def test_states_of_a_gpu(first: dict[str, t.Any], got: list[str]) -> None:
    assert [text for _one, text in found(node(first=first))] == got


def test_a_lost_gpu_is_not_judged_by_its_links() -> None:
    made = node(first={"is_lost": True})
    assert made.nvlinks is not None
    links = {key: value for key, value in made.nvlinks.items() if ONE not in key}
    assert found(replace(made, nvlinks=links)) == [(f"GPU {ONE}", "lost")]


@pytest.mark.parametrize(("first", "wanted", "got"), [
    ({"persistence": False}, {"persistence": True}, ["Disabled"]), ({"persistence": False}, {}, []),
    ({"persistence": True}, {"persistence": True}, []), ({"persistence": None}, {"persistence": True}, []),
    ({"mig": Mode("Enabled", "Enabled")}, {"mig": False}, ["Enabled"]),
    ({"mig": Mode("Enabled", "Enabled")}, {}, []), ({"mig": Mode()}, {"mig": False}, []),
])
def test_modes_that_the_class_wants(first: dict[str, t.Any], wanted: dict[str, t.Any], got: list[str]) -> None:
    assert [text for _one, text in found(node(first=first), **wanted)] == got


@pytest.mark.parametrize(("margin", "wanted"), [
    (50, None), (11, None), (10, "more than 10"), (4, "more than 10"), (3, "more than 3"), (-1, "more than 3"),
    (None, None)])
def test_degrees_left(margin: int | None, wanted: str | None) -> None:
    got = judge.findings(node(first={"temperature": Temperature("margin", 80, margin)}), Wanted())
    assert [one.wanted for one in got] == ([wanted] if wanted else [])


@pytest.mark.parametrize(("events", "count"), [
    (("Idle",), 0), (("SW Power Cap",), 0), (("HW Slowdown",), 0), ((), 0), (None, 0),
    (("SW Thermal Slowdown",), 1), (("HW Slowdown", "HW Thermal Slowdown"), 1),
    (("HW Slowdown", "HW Power Brake Slowdown"), 1)])
def test_reasons_for_low_clocks(events: tuple[str, ...] | None, count: int) -> None:
    assert len(found(node(first={"events": events}))) == count


@pytest.mark.parametrize(("pci_id", "fabric", "got"), [
    (GB200, replace(GOOD, clique_id=32766), []),
    (GB200, replace(GOOD, health={}), []),
    (GB200, replace(GOOD, state="In Progress", status=None), ["state In Progress, status None"]),
    (GB200, replace(GOOD, state="Not Started", status=None), ["state Not Started, status None"]),
    (GB200, replace(GOOD, status="Insufficient Resources", clique_id=0, cluster_uuid=ZERO),
     ["state Completed, status Insufficient Resources"]),
    (GB200, replace(GOOD, clique_id=0), [f"clique 0, cluster {UUID}"]),
    (GB200, replace(GOOD, cluster_uuid=ZERO), [f"clique 1, cluster {ZERO}"]),
    (GB200, replace(GOOD, cluster_uuid=None), ["clique 1, cluster None"]),
    (GB200, replace(GOOD, health={"Summary": "Unhealthy", "Bandwidth": "Full"}), ["Unhealthy (Bandwidth Full)"]),
    (GB200, Fabric(), ["state None, status None"]), (GB200, None, ["state None, status None"]),
    # HGX on 535 prints two fields; a card has none; of an unknown board nothing is said.
    (H100, Fabric("Completed", "Success"), []), (H100, Fabric("In Progress"), ["state In Progress, status None"]),
    (L40S, Fabric(), []), (L40S, None, []), (OTHER, Fabric("In Progress"), []),
])
def test_fabric_by_board(pci_id: str, fabric: Fabric | None, got: list[str]) -> None:
    made = node(pci_id, first={"fabric": fabric})
    if pci_id != GB200 and made.smi:
        made = replace(made, smi=(made.smi[0], replace(made.smi[1], fabric=Fabric("Completed", "Success"))))
    # Another clique is a second finding, tested below.
    assert [text for one, text in found(made) if one.startswith("NVLink fabric")] == got


def test_one_domain_for_all_gpus() -> None:
    made = node(first={"fabric": replace(GOOD, clique_id=2)})
    assert found(made) == [("NVLink domain", f"{UUID}.1, {UUID}.2")]
    assert found(node(first={"fabric": Fabric()})) == [(f"NVLink fabric of GPU {ONE}", "state None, status None")]


@pytest.mark.parametrize(("pci_id", "links", "got"), [
    (GB200, {number: 50.0 for number in range(18)}, []),
    (GB200, {**{number: 50.0 for number in range(17)}, 17: None}, ["17 active, down: 17"]),
    (GB200, {number: 50.0 for number in range(12)}, ["12 active, down: none"]), (GB200, {}, ["0 active, down: none"]),
    # No number is known for it: only links that are down are told.
    (H100, {number: 26.562 for number in range(18)}, []), (H100, {0: 26.562, 1: None}, ["1 active, down: 1"]),
    (L40S, {}, []), (OTHER, {}, []),
])
def test_links(pci_id: str, links: dict[int, float | None], got: list[str]) -> None:
    made = node(pci_id)
    assert made.nvlinks is not None
    made = replace(made, nvlinks={**made.nvlinks, f"GPU-{ONE}": links})
    assert [text for _one, text in found(made)] == got
    assert found(replace(made, nvlinks=None)) == []


@pytest.mark.parametrize(("pci_id", "unit", "got"), [
    (GB200, ("loaded", "failed", "enabled"), ["failed, enabled"]),
    (L40S, ("loaded", "active", "enabled"), ["active, enabled"]),
    (L40S, ("loaded", "inactive", "enabled"), ["inactive, enabled"]),
    (L40S, ("loaded", "inactive", "disabled"), []), (L40S, ("not-found", "inactive", ""), []),
    (L40S, ("masked", "inactive", "masked"), []),
    (H100, ("loaded", "active", "enabled"), []), (H100, ("loaded", "failed", "enabled"), ["failed"]),
    (H100, ("not-found", "inactive", ""), ["not installed"]),
    (OTHER, ("loaded", "active", "enabled"), []),
])
def test_fabric_manager_only_beside_nvswitches(pci_id: str, unit: tuple[str, str, str], got: list[str]) -> None:
    assert [text for one, text in found(node(pci_id, units=(Unit(FM, *unit),))) if one == FM] == got


def test_without_systemd_nothing_is_said_of_units() -> None:
    assert found(node(H100, units=None)) == []


def test_the_class_names_the_board() -> None:
    assert judge.kind(Pci(ONE, OTHER), Wanted()) is None
    assert judge.kind(Pci(ONE, OTHER), Wanted(board="pcie")) == "pcie"
    assert judge.kind(Pci(ONE, GB200), Wanted()) == "nvl"
