# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Mode, Remap, Smi, Temperature

from tests.unit.plugins.gpu_node import card, smi_log

PCI = "0008:01:00.0"


def one(width: int = 51, **sections: t.Any) -> Smi:
    data = card("NVIDIA GB200", "GPU-1", 189471)
    data.update({key.replace("_", " "): value for key, value in sections.items()})
    version, found = parse.gpus(smi_log({PCI: data}, "580.126.09", width))
    assert version == "580.126.09"
    assert [gpu.pci for gpu in found] == [PCI]
    return found[0]


@pytest.mark.parametrize("width", [42, 51])
def test_both_widths_of_the_key_column(width: int) -> None:
    found = one(width)
    assert (found.name, found.uuid, found.persistence) == ("NVIDIA GB200", "GPU-1", True)
    assert (found.memory_total_mib, found.bar1_total_mib) == (189471, 131072)
    assert (found.mig, found.ecc) == (Mode("Disabled", "Disabled"), Mode("Enabled", "Enabled"))
    assert found.ecc_errors == {"volatile_correctable": 0, "volatile_uncorrectable": 0, "aggregate_correctable": 3,
                                "aggregate_uncorrectable": 0}
    assert found.clocks_mhz == {"sm": 345, "memory": 2619, "graphics": 345, "video": 765, "max_sm": 1980,
                                "max_memory": 2619}
    assert (found.reset_required, found.recovery_action, found.is_lost) == (False, "None", False)


@pytest.mark.parametrize("name", ["Clocks Event Reasons", "Clocks Throttle Reasons"])
def test_events_by_either_name(name: str) -> None:
    data = card("x", "GPU-1", 1)
    data[name] = {**data.pop("Clocks Event Reasons"), "HW Slowdown": "Active", "HW Thermal Slowdown": "Active"}
    found = parse.gpus(smi_log({PCI: data}, "535.1.1", 42))[1][0]
    # SW Thermal Slowdown is active in the section of counters only, which is another one.
    assert found.events == ("Idle", "HW Slowdown", "HW Thermal Slowdown")


def test_no_events_are_not_none_active() -> None:
    data = card("x", "GPU-1", 1)
    del data["Clocks Event Reasons"]
    assert parse.gpus(smi_log({PCI: data}, "1", 42))[1][0].events is None


@pytest.mark.parametrize(("labels", "wanted"), [
    ({"GPU Current Temp": "85 C", "GPU T.Limit Temp": "2 C", "GPU Slowdown T.Limit Temp": "-2 C"},
     Temperature("margin", 85, 2, None)),
    # A10: absolute limits; its T.Limit is N/A.
    ({"GPU Current Temp": "33 C", "GPU T.Limit Temp": "N/A", "GPU Shutdown Temp": "101 C", "GPU Slowdown Temp": "98 C",
      "GPU Max Operating Temp": "91 C", "Memory Current Temp": "N/A"}, Temperature("absolute", 33, 58, None)),
    ({"GPU Current Temp": "33 C", "GPU Slowdown Temp": "98 C", "GPU Max Operating Temp": "N/A"},
     Temperature("absolute", 33, 65, None)),
    # The margin itself is missing: -2 is no temperature.
    ({"GPU Current Temp": "33 C", "GPU T.Limit Temp": "N/A", "GPU Slowdown T.Limit Temp": "-2 C"},
     Temperature("margin", 33, None, None)),
    ({"GPU Current Temp": "N/A"}, Temperature()),
])
def test_two_families_of_temperatures(labels: dict[str, str], wanted: Temperature) -> None:
    assert one(Temperature=labels).temperature == wanted


@pytest.mark.parametrize(("rows", "pages", "wanted"), [
    ({"Correctable Error": "0", "Uncorrectable Error": "4", "Pending": "Yes", "Remapping Failure Occurred": "No"}, {},
     Remap(0, 4, True, False)),
    ({}, {"Pending Page Blacklist": "Yes"}, Remap(None, None, True, None)),
    ("N/A", {"Pending Page Blacklist": "N/A"}, Remap()),
])
def test_remapped_rows(rows: t.Any, pages: dict[str, str], wanted: Remap) -> None:
    assert one(Remapped_Rows=rows, Retired_Pages=pages).remap == wanted


def test_fabric() -> None:
    found = one(Fabric={"State": "Completed", "Status": "Success", "CliqueId": "32766",
                        "Health": {"Summary": "Unhealthy", "Bandwidth": "Full"}}).fabric
    assert found is not None
    assert (found.state, found.status, found.clique_id, found.cluster_uuid) == ("Completed", "Success", 32766, None)
    assert found.health == {"Summary": "Unhealthy", "Bandwidth": "Full"}
    # The state of the fabric is not that of its health.
    inner = one(Fabric={"Health": {"State": "x"}, "State": "In Progress"}).fabric
    assert inner is not None and inner.state == "In Progress"
    none = one(Fabric={"State": "N/A", "Status": "N/A"}).fabric
    assert none is not None and (none.state, none.status) == (None, None)


@pytest.mark.parametrize("value", ["N/A", "[N/A]", "[Not Supported]", "Unknown Error", "[Unknown Error]"])
def test_missing_values(value: str) -> None:
    found = one(FB_Memory_Usage={"Total": value}, Persistence_Mode=value, GPU_Recovery_Action=value)
    assert (found.memory_total_mib, found.persistence, found.recovery_action) == (None, None, None)


def test_a_lost_gpu_and_processes() -> None:
    assert one(FB_Memory_Usage={"Total": "GPU is lost"}).is_lost
    assert one(Processes={"GPU instance ID": "N/A", "Process ID": "7", "Name": "a : b"}).name == "NVIDIA GB200"


@pytest.mark.parametrize("text", ["", "NVIDIA-SMI has failed", "a : b\n"])
def test_text_of_something_else(text: str) -> None:
    with pytest.raises(ValueError, match="NVSMI LOG"):
        parse.gpus(text)


@pytest.mark.parametrize(("rc", "text", "wanted"), [
    (18, "", 18), (9, "", 9), (6, "", 6), (15, "", 15), (0, "No devices were found", 6),
    (1, "", None), (None, "", None),
    (255, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9),
    (0, "GPU is lost\n====NVSMI LOG====", None),
])
def test_error_state(rc: int | None, text: str, wanted: int | None) -> None:
    assert parse.error_state(rc, text) == wanted


def test_library_version() -> None:
    assert parse.library_version("x\nNVML library version: 580.178\n") == "580.178"
    assert parse.library_version("x") is None


def test_nvlinks() -> None:
    text = ("GPU 0: NVIDIA GB200 (UUID: GPU-a)\n\t Link 0: 50 GB/s\n\t Link 1: <inactive>\n"
            "GPU 1: NVIDIA GB200 (UUID: GPU-b)\n\t Link 0: 26.562 GB/s\nGPU 2: NVIDIA GB200 (UUID: GPU-c)\n")
    assert parse.nvlinks(text) == {"GPU-a": {0: 50.0, 1: None}, "GPU-b": {0: 26.562}, "GPU-c": {}}
    with pytest.raises(ValueError):
        parse.nvlinks("Link 0: 50 GB/s\n")
