# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each finding of the driver, and beside it a similar state that is none."""
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import judge_driver
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.judge import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import (
    Driver,
    Package,
    Pci,
    Setting,
    Wanted,
)

VERSION = "580.126.09"
GB200, L40S = "10de:2941", "10de:26b9"
A, B = "/etc/modprobe.d/a.conf", "/etc/modprobe.d/b.conf"


def found(pci_id: str = GB200, wanted: Wanted | None = None, settings: tuple[Setting, ...] = (),
          in_force: dict[str, str] | None = None, **driver: t.Any) -> list[tuple[str, str, str]]:
    values = {"loaded": VERSION, "flavour": "open", "is_loaded": True, "on_disk": VERSION, "on_disk_flavour": "open",
              "userspace": VERSION, **driver}
    node = Node(pcis=(Pci("0008:01:00.0", pci_id),), driver=Driver(**values), settings=settings, in_force=in_force)
    return [(one.object, one.got, one.wanted) for one in judge_driver.findings(node, wanted or Wanted())]


def test_all_versions_agree() -> None:
    helpers = tuple(Package(name, version) for name, version in (
        ("nvidia-imex", VERSION), ("libnvidia-nscq-580", VERSION), ("nvidia-open", "1.2.3"),
        # Two parts for a driver of three; versioned by its distribution.
        ("nvidia-fabricmanager", "580.126"), ("nvidia-persistenced", "535.171.04")))
    assert found(packages=helpers) == []


@pytest.mark.parametrize(("driver", "object_"), [
    ({"on_disk": "580.159.04"}, "nvidia on disk"), ({"userspace": "580.159.04"}, "libnvidia-ml"),
    ({"userspace": "580.178"}, "libnvidia-ml"),
    ({"packages": (Package("nvidia-imex", "580.159.04"),)}, "package nvidia-imex"),
    ({"packages": (Package("nvidia-fabricmanager-570", "570.211.01"),)}, "package nvidia-fabricmanager-570"),
])
def test_one_version_differs(driver: dict[str, t.Any], object_: str) -> None:
    """A partial upgrade; what is not there, and a driver that is not loaded, are no difference."""
    assert [(one, wanted) for one, _got, wanted in found(**driver)] == [(object_, f"{VERSION}, which is loaded")]
    assert found(on_disk=None, userspace=None) == []
    assert all(one != object_ for one, _got, _wanted in found(loaded=None, is_loaded=False, **driver))


def test_not_loaded() -> None:
    assert found(is_loaded=False, loaded=None, flavour=None) == [("module nvidia", "not loaded", "loaded")]
    assert found(nouveau=True) == [("module nouveau", "loaded", "not loaded")]


@pytest.mark.parametrize(("pci_id", "driver", "wanted", "objects"), [
    (GB200, {"flavour": "proprietary"}, None, ["nvidia"]), (GB200, {"flavour": None}, None, []),
    (GB200, {"on_disk_flavour": "proprietary"}, None, ["nvidia on disk"]),
    (L40S, {"flavour": "proprietary"}, None, []), (L40S, {"flavour": "proprietary"}, "open", ["nvidia"]),
    (L40S, {}, "open", []),
])
def test_flavour(pci_id: str, driver: dict[str, t.Any], wanted: t.Any, objects: list[str]) -> None:
    assert [one for one, _got, _wanted in found(pci_id, Wanted(flavour=wanted), **driver)] == objects


@pytest.mark.parametrize(("version", "count"), [("580.126.09", 0), ("580.126.9", 0), ("580.159.04", 1), (None, 0)])
def test_the_version_of_the_class(version: str | None, count: int) -> None:
    assert len(found(wanted=Wanted(driver_version=version))) == count


@pytest.mark.parametrize(("state", "count"), [("installed", 0), ("half-configured", 1), ("half-installed", 1),
                                              ("unpacked", 1)])
def test_package_states(state: str, count: int) -> None:
    assert len(found(packages=(Package("nvidia-open", VERSION, state),))) == count


def test_registry_dwords_do_not_add_up() -> None:
    two = (Setting("RegistryDwords", "X=1;", A), Setting("RegistryDwords", "Y=1;", B))
    assert found(settings=two, in_force={"RegistryDwords": "Y=1;"}) == [
        ("NVreg_RegistryDwords", f"set 2 times: {A} and {B}", "set once")]
    assert found(settings=two[:1], in_force={"RegistryDwords": "X=1"}) == []


@pytest.mark.parametrize(("setting", "in_force", "got"), [
    (Setting("DeviceFileMode", "0660", A), {"DeviceFileMode": "432"}, []),
    (Setting("DeviceFileMode", "0660", A), {"DeviceFileMode": "438"}, ["438 in force"]),
    (Setting("RegistryDwords", "X=1;", A), {"RegistryDwords": ""}, ["nothing in force"]),
    (Setting("PeerMappingOverride", "1", A), {"DeviceFileMode": "438"}, ["unknown to the loaded driver"]),
    # An option of the module that params does not show cannot be compared.
    (Setting("CoherentGPUMemoryMode", "driver", A), {"DeviceFileMode": "438"}, []),
    (Setting("DeviceFileMode", "0660", A), None, []),
])
def test_on_disk_against_in_force(setting: Setting, in_force: dict[str, str] | None, got: list[str]) -> None:
    options = frozenset({"CoherentGPUMemoryMode", "DeviceFileMode"})
    assert [text for _one, text, _wanted in found(settings=(setting,), in_force=in_force, options=options)] == got


def test_the_last_file_wins() -> None:
    both = (Setting("EnableStreamMemOPs", "1", A), Setting("EnableStreamMemOPs", "0", B))
    assert found(settings=both, in_force={"EnableStreamMemOPs": "0"}) == []
    assert found(settings=both[::-1], in_force={"EnableStreamMemOPs": "0"}) == [
        ("NVreg_EnableStreamMemOPs", "0 in force", f"1 of {A}")]


@pytest.mark.parametrize(("in_force", "count"), [({"X": "1"}, 0), ({"X": "0x1"}, 0), ({"X": "0"}, 1), ({}, 1)])
def test_parameters_of_the_class(in_force: dict[str, str], count: int) -> None:
    assert len(found(wanted=Wanted(module_parameters={"X": "1"}), in_force=in_force)) == count
