# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import driver_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Package, Setting, Unit
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.gpu_node import GpuNode, gb200, l40s

XID = "1796090588.5 gb1 kernel: NVRM: Xid (PCI:0008:01:00): 79, pid=7, name=x, GPU has fallen off the bus\n"
HUNG = Result((), "timeout", None, "", "no answer within 30 s; ended by us")
MISSING = Result((), "missing")


def driver(node: GpuNode) -> tuple[driver_io.Driver, list[str]]:
    problems: list[Problem] = []
    return driver_io.driver(node.machine(), problems), [one.object for one in problems]


def test_both_flavours(tmp_path: Path) -> None:
    found, problems = driver(l40s(tmp_path))
    assert (found.flavour, found.on_disk_flavour, found.loaded, problems) == (
        "proprietary", "proprietary", "570.211.01", [])
    # The compiler's version on the second line is not the driver's.
    assert found.options == {"RegistryDwords", "CoherentGPUMemoryMode"}


@pytest.mark.parametrize(("answer", "problems"), [
    (failed(1, "modinfo: ERROR: Module nvidia not found."), []), (MISSING, ["modinfo nvidia"]),
    (HUNG, ["modinfo nvidia"])])
def test_no_module_on_disk(tmp_path: Path, answer: Result, problems: list[str]) -> None:
    node = gb200(tmp_path)
    node.override[("modinfo",)] = lambda call: answer
    found, said = driver(node)
    assert (found.on_disk, found.loaded, said) == (None, "580.126.09", problems)


def test_a_version_file_of_something_else(tmp_path: Path) -> None:
    node = gb200(tmp_path)
    node.put("/proc/driver/nvidia/version", "garbage\n")
    found, problems = driver(node)
    assert (found.loaded, found.flavour, problems) == ("580.126.09", None, ["/proc/driver/nvidia/version"])


def test_packages_of_rpm(tmp_path: Path) -> None:
    node = gb200(tmp_path)
    node.override[("dpkg-query",)] = lambda call: MISSING
    node.override[("rpm",)] = lambda call: ok("nvidia-imex\t580.126.09\n")
    found, problems = driver(node)
    assert (found.packages, problems) == ((Package("nvidia-imex", "580.126.09"),), [])


@pytest.mark.parametrize(("answer", "count"), [
    (failed(1, "dpkg-query: no packages found matching *nvidia*"), 0),
    (ok("odd\n"), 1), (HUNG, 1), (failed(2, "x"), 1)])
def test_no_packages(tmp_path: Path, answer: Result, count: int) -> None:
    node = gb200(tmp_path)
    node.override[("dpkg-query",)] = lambda call: answer
    found, problems = driver(node)
    assert (found.packages, len(problems)) == ((), count)


def test_settings(tmp_path: Path) -> None:
    """In the order of the names; a file in /etc replaces one of that name elsewhere; other files do not count."""
    node = gb200(tmp_path)
    for path, value in {"/etc/modprobe.d/20.conf": 1, "/usr/lib/modprobe.d/20.conf": 2, "/lib/modprobe.d/30.conf": 3,
                        "/run/modprobe.d/10.conf": 4, "/etc/modprobe.d/40.conf.bak": 5}.items():
        node.put(path, f"options nvidia NVreg_X={value}\n")
    node.put("/proc/cmdline", "quiet nvidia.NVreg_X=6\n")
    assert driver_io.settings(node.machine()) == (
        Setting("X", "4", "/run/modprobe.d/10.conf"), Setting("X", "1", "/etc/modprobe.d/20.conf"),
        Setting("X", "3", "/lib/modprobe.d/30.conf"), Setting("X", "6", "/proc/cmdline"))


def test_in_force(tmp_path: Path) -> None:
    node = gb200(tmp_path)
    assert (driver_io.in_force(node.machine()) or {})["DeviceFileMode"] == "438"
    (tmp_path / "proc/driver/nvidia/params").unlink()
    assert driver_io.in_force(node.machine()) is None


@pytest.mark.parametrize(("answer", "count"), [(MISSING, 1), (ok("garbage\n"), 1), (HUNG, 1)])
def test_units(tmp_path: Path, answer: Result, count: int) -> None:
    node = gb200(tmp_path)
    problems: list[Problem] = []
    assert driver_io.units(node.machine(), problems) == (
        Unit("nvidia-fabricmanager.service", "not-found", "inactive", ""),
        Unit("nvidia-imex.service", "loaded", "active", "enabled"),
        Unit("nvidia-persistenced.service", "loaded", "active", "enabled"))
    node.override[("systemctl",)] = lambda call: answer
    assert driver_io.units(node.machine(), problems) is None
    assert len(problems) == count


@pytest.mark.parametrize(("journal", "ring", "wanted"), [
    (ok(XID), None, (1, "journal", [], [])), (Result((), "failed", 1), None, (0, "journal", [], [])),
    (ok("-- No entries --\n"), None, (0, "journal", [], [])),
    (failed(1, "Compiled without pattern matching support"), ok(XID), (1, "dmesg", [], [])),
    (MISSING, ok(""), (0, "dmesg", [], [])), (HUNG, HUNG, (0, None, ["dmesg"], [])),
    (MISSING, MISSING, (0, None, ["dmesg"], [])),
    # What this user may not see is not taken for no Xid.
    (Result((), "ok", 0, "", "Hint: You are currently not seeing messages from other users and the system."),
     failed(1, "dmesg: read kernel buffer failed: Operation not permitted"), (0, None, [], ["journal", "dmesg"])),
    (failed(1, "No journal files were opened due to insufficient permissions."), ok(XID),
     (1, "dmesg", [], ["journal"])),
])
def test_events(tmp_path: Path, journal: Result, ring: Result | None, wanted: t.Any) -> None:
    node = gb200(tmp_path)
    node.override[("journalctl",)] = lambda call: journal
    if ring is not None:
        node.override[("dmesg",)] = lambda call: t.cast("Result", ring)
    problems: list[Problem] = []
    needs_root: list[str] = []
    found, source = driver_io.events(node.machine(), problems, needs_root)
    assert (len(found), source, [one.object for one in problems], needs_root) == wanted
