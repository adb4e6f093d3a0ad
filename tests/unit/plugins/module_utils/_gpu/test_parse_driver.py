# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import parse_driver
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Driven, Package, Setting

from tests.unit.plugins.gpu_node import INFORMATION, PARAMS

FILE = "/etc/modprobe.d/nvidia.conf"


def test_information() -> None:
    text = INFORMATION.format(name="NVIDIA L40S", uuid="GPU-1", pci="0018:01:00.0", minor=2, version="580.1.2")
    assert parse_driver.information(text) == Driven("0018:01:00.0", "NVIDIA L40S", "GPU-1", 2, "580.1.2", False)
    assert parse_driver.information(text.replace("Excluded:\t No", "Excluded:\t Yes")).excluded is True
    with pytest.raises(ValueError):
        parse_driver.information("")


def test_parameters() -> None:
    found = parse_driver.parameters(PARAMS + 'NVreg_Old: 1\nRmMsg: "a: b"\n')
    assert (found["EnableStreamMemOPs"], found["RegistryDwords"]) == ("0", "")
    assert (found["Old"], found["RmMsg"]) == ("1", "a: b")


def test_options() -> None:
    text = ("# options nvidia NVreg_A=1\noptions nvidia NVreg_B=1 NVreg_RegistryDwords=\"X=1;Y=2;\" # why\n"
            "options nvidia-drm modeset=1\noptions nvidia-current NVreg_C=0x10 \\\n  NVreg_D\nblacklist nouveau\n"
            "options nvidia NVreg_E='open quote\n")
    assert parse_driver.options(text, FILE) == [
        Setting("B", "1", FILE), Setting("RegistryDwords", "X=1;Y=2;", FILE), Setting("C", "0x10", FILE),
        Setting("D", "1", FILE), Setting("E", "'open", FILE)]


def test_command_line() -> None:
    text = 'root=UUID=1 iommu=pt nvidia.NVreg_A=2 nvidia-drm.modeset=1 nvidia.NVreg_RegistryDwords="X=1;"\n'
    assert parse_driver.command_line(text) == [
        Setting("A", "2", "/proc/cmdline"), Setting("RegistryDwords", "X=1;", "/proc/cmdline")]
    assert parse_driver.command_line("a 'b nvidia.NVreg_A=1") == [Setting("A", "1", "/proc/cmdline")]


@pytest.mark.parametrize(("name", "one", "other", "same"), [
    ("DeviceFileMode", "432", "0660", True), ("DeviceFileMode", "438", "0660", False),
    ("X", "16", "0x10", True), ("X", "4294967295", "-1", True), ("X", '"driver"', "driver", True),
    ("X", "", "driver", False), ("X", "0", "1", False),
    ("RegistryDwords", "A=1;B=0x2;", "B=2;A=1", True), ("RegistryDwords", "", "A=1;", False),
    ("RegistryDwords", "A=1;", "A=2;", False),
])
def test_same_parameter(name: str, one: str, other: str, same: bool) -> None:
    assert parse_driver.same_parameter(name, one, other) is same


@pytest.mark.parametrize(("licence", "wanted"), [("NVIDIA", "proprietary"), ("Dual MIT/GPL", "open"), ("", None)])
def test_flavour_of_licence(licence: str, wanted: str | None) -> None:
    assert parse_driver.flavour_of_licence(licence) == wanted


@pytest.mark.parametrize(("names", "wanted"), [
    (["libnvidia-ml.so.580.126.09"], "580.126.09"), (["libnvidia-ml.so.1"], None), ([], None),
    (["libnvidia-ml.so.580.126.09", "libnvidia-ml.so.570.1"], None)])
def test_library_version(names: list[str], wanted: str | None) -> None:
    assert parse_driver.library_version(names) == wanted


@pytest.mark.parametrize(("text", "wanted"), [
    ("580.126.09-1", "580.126.09"), ("1:580.126.09-0ubuntu1", "580.126.09"),
    ("570.211.01-0lambda0.22.04.1", "570.211.01"),
    ("odd", "odd")])
def test_package_version(text: str, wanted: str) -> None:
    assert parse_driver.package_version(text) == wanted


def test_dpkg() -> None:
    text = ("nvidia-imex\t580.126.09-1\thold\tinstalled\nnvidia-open\t580.126.09-1\tinstall\thalf-configured\n"
            "nvidia-old\t\tunknown\tnot-installed\nnvidia-rc\t535.1-1\tdeinstall\tconfig-files\n")
    assert parse_driver.dpkg(text) == (
        Package("nvidia-imex", "580.126.09", "installed", True),
        Package("nvidia-open", "580.126.09", "half-configured", False))
    with pytest.raises(ValueError):
        parse_driver.dpkg("nvidia-imex 580\n")


def test_rpm() -> None:
    assert parse_driver.rpm("nvidia-imex\t580.126.09\n") == (Package("nvidia-imex", "580.126.09"),)
    assert parse_driver.rpm("") == ()
    with pytest.raises(ValueError):
        parse_driver.rpm("nvidia-imex-580\n")
