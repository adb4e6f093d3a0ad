# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.sysfs import Sysfs
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import Request

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.stack_node import INBOX_HOLDERS, KERNEL, NEXT, RHEL, stack_node

NAMES: dict[str, tuple[str, ...]] = {"Debian": ("rdma-core", "perftest"), "RedHat": ("rdma-core", "perftest")}
INBOX = Request(packages=NAMES, programs=("ibv_devinfo", "/opt/x/tool"))
DOCA = Request("doca_ofed", NAMES, doca_version="3.2.1-044000")


def test_an_inbox_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/somewhere")
    node = stack_node(tmp_path)
    node.packages = {"rdma-core": "50.0-2"}
    node.program("/usr/sbin/ibv_devinfo")
    found = io.gather(node.machine(), INBOX)
    assert (found.os.codename, found.kernel, found.kernels, found.packages) == (
        "noble", KERNEL, (KERNEL,), {"rdma-core": "50.0-2"})
    assert found.missing_programs == ("/opt/x/tool",)
    assert (found.loaded.kind, found.loaded.version, found.on_disk().kind) == ("inbox", None, "inbox")
    assert [function.pci for function in found.functions] == ["0000:03:00.0", "0002:03:00.0"]
    assert found.functions[1].rdma_devices == ("mlx5_1",)
    assert (found.package, found.builds, found.secure_boot, found.has_openibd, found.problems) == (
        None, (), None, False, ())
    # Budget: 6 and 3 for each device.
    assert len(node.calls) <= 6


def test_a_program_that_cannot_be_run_is_missing(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.put("/usr/bin/ibv_devinfo", "text")
    node.program("/opt/x/tool")
    assert io.gather(node.machine(), INBOX).missing_programs == ("ibv_devinfo",)


def test_an_ofed_node(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.install_ofed()
    found = io.gather(node.machine(), DOCA)
    assert (found.loaded.kind, found.on_disk().kind, found.package) == ("inbox", "ofed", "OFED-internal-25.10-1.7.1")
    assert [build.state for build in found.builds] == ["installed"]
    node.load("ofed")
    found = io.gather(node.machine(), DOCA)
    assert (found.loaded.kind, found.loaded.version, found.has_openibd) == ("ofed", "25.10-1.7.1", True)


def test_modules_are_told_by_proc_as_well(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.put("/proc/modules", "mlxdevm 184320 1 mlx5_core, Live 0x0\nmlx5_core 2310144 1 mlx5_ib, Live 0x0\n\n")
    assert io.gather(node.machine(), INBOX).loaded.kind == "ofed"


def test_a_driver_in_the_kernel_itself(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.load("inbox", {})
    assert io.gather(node.machine(), INBOX).loaded.kind == "inbox"
    node.load("none")
    # A folder without initstate is a module that was not loaded from a file; it has parameters.
    node.put("/sys/module/mlx5_core/parameters/x", "1")
    assert io.gather(node.machine(), INBOX).loaded.kind is None


def test_holders_with_cycles(tmp_path: Path) -> None:
    links = {**INBOX_HOLDERS, "ib_uverbs": ["mlx5_ib", "nvidia_peermem"], "nvidia_peermem": ["odd"],
             "odd": ["ib_uverbs", "odd"]}
    for module, holders in links.items():
        for holder in holders:
            (tmp_path / f"module/{module}/holders/{holder}").mkdir(parents=True, exist_ok=True)
    found = {one.name: one for one in io.walk_holders(Sysfs(tmp_path))}
    assert set(found) == {"ib_uverbs", "rdma_cm", "mlx5_ib", "rdma_ucm", "nvidia_peermem", "odd"}
    assert found["mlx5_ib"].uses == ("ib_core", "mlx5_core", "ib_uverbs")
    assert found["ib_uverbs"].uses == ("ib_core", "odd")
    assert {name for name, one in found.items() if one.role != "stack"} == {"nvidia_peermem", "odd"}
    assert io.walk_holders(Sysfs(tmp_path / "none")) == ()


def test_kernels_that_can_be_booted(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.kernel(NEXT)
    node.put("/lib/modules/6.9.0-1-generic/modules.dep")
    node.put("/boot/vmlinuz-0-rescue-1234")
    found = io.gather(node.machine(), INBOX)
    assert (found.kernels, found.next_kernel) == ((KERNEL, NEXT), NEXT)
    assert set(found.installed) == {KERNEL, NEXT} and found.on_disk(NEXT).kind is None
    for image in (tmp_path / "boot").iterdir():
        image.unlink()
    assert io.gather(node.machine(), INBOX).next_kernel == "6.9.0-1-generic"


def test_rpm_is_asked_on_rhel(tmp_path: Path) -> None:
    node = stack_node(tmp_path, RHEL)
    node.packages = {"perftest": "24.04-1.el9"}
    found = io.gather(node.machine(), INBOX)
    assert (found.packages, found.problems) == ({"perftest": "24.04-1.el9"}, ())
    assert [call[0] for call in node.calls if call[0] in ("rpm", "dpkg-query")] == ["rpm"]
    node.override["rpm"] = lambda call: Result((), "failed", 1, "", "error: cannot open Packages database")
    assert "cannot open Packages" in io.gather(node.machine(), INBOX).problems[0].got


@pytest.mark.parametrize(("said", "enrolled"), [("is already enrolled", True), ("is not enrolled", False)])
def test_secure_boot_and_the_key(tmp_path: Path, said: str, enrolled: bool) -> None:
    node = stack_node(tmp_path)
    node.put("/var/lib/dkms/mok.pub", "key")
    node.override["mokutil"] = lambda call: ok(
        "SecureBoot enabled\n" if call[1] == "--sb-state" else f"/var/lib/dkms/mok.pub {said}\n")
    found = io.gather(node.machine(), INBOX)
    assert (found.secure_boot, found.key_enrolled) == (True, enrolled)
    node.override["mokutil"] = lambda call: failed(1, "EFI variables are not supported on this system")
    assert io.gather(node.machine(), INBOX).secure_boot is None


def test_secure_boot_without_a_key(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.override["mokutil"] = lambda call: ok("SecureBoot enabled\n")
    assert io.gather(node.machine(), INBOX).key_enrolled is False


HUNG = Result((), "timeout", None, "", "no answer within 1 s; ended by us")
MISSING = Result((), "missing")


@pytest.mark.parametrize(("tool", "answer", "text"), [
    ("dpkg_query", HUNG, "no answer within 1 s"), ("dpkg_query", ok("garbage\n"), "cannot be read"),
    ("dpkg_query", failed(2, "dpkg-query: error: database is locked"), "database is locked"),
    ("dpkg_query", MISSING, "the program is not installed"),
    ("modinfo", HUNG, "no answer within 1 s"), ("modinfo", ok("garbage\n"), "no filename"),
    ("modinfo", failed(1, "modinfo: ERROR: could not get modinfo"), "could not get modinfo"),
    ("modinfo", MISSING, "the program is not installed"),
    ("dkms", HUNG, "no answer within 1 s"), ("dkms", ok("Error! x\n"), "not a line of dkms status"),
    ("ofed_info", HUNG, "no answer within 1 s"), ("mokutil", HUNG, "no answer within 1 s"),
])
def test_a_tool_that_is_missing_hung_or_talks_nonsense(tmp_path: Path, tool: str, answer: Result, text: str) -> None:
    node = stack_node(tmp_path)
    node.install_ofed()
    node.override[tool] = lambda call: answer
    found = io.gather(node.machine(), DOCA)
    assert [text in problem.got for problem in found.problems] == [True]
    assert found.problems[0].object.startswith(tool.replace("_q", "-q").split("-")[0])


def test_tools_that_need_not_be_there(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.install_ofed()
    for tool in ("modinfo", "dkms", "ofed_info", "mokutil"):
        node.override[tool] = lambda call: MISSING
    found = io.gather(node.machine(), INBOX)
    assert (found.problems, found.on_disk().kind) == ((), None)


def test_an_os_release_that_is_none(tmp_path: Path) -> None:
    node = stack_node(tmp_path, "")
    assert [problem.object for problem in io.gather(node.machine(), INBOX).problems] == ["/etc/os-release"]


@pytest.mark.parametrize(("answer", "holders", "known"), [
    (ok('[{"ifname": "mlx5_0", "type": "RC", "comm": "perf", "pid": 7}]'),
     ["pid 7 perf has connections on mlx5_0"], True),
    (ok("garbage"), [], False), (MISSING, [], False), (Result((), "ok", 0, "[]", "not supported"), [], False),
])
def test_impact(tmp_path: Path, answer: Result, holders: list[str], known: bool) -> None:
    node = stack_node(tmp_path)
    node.put("/proc/5/cgroup", "0::/user.slice\n")
    node.override["rdma"] = lambda call: answer
    node.default_device = "rail1"
    found = io.impact(node.machine())
    assert ([holder.text() for holder in found.holders], found.users_known) == (holders, known)
    assert (found.uses, found.problems) == ({"rail1": "carries the default route"}, ())


def test_virtual_functions_are_counted_and_not_listed(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.put("/sys/bus/pci/devices/0000:03:00.0/sriov_numvfs", "2\n")
    for name in ("vendor", "class"):
        node.put(f"/sys/bus/pci/devices/0000:03:00.2/{name}", {"vendor": "0x15b3", "class": "0x020000"}[name])
    (tmp_path / "sys/bus/pci/devices/0000:03:00.2/physfn").symlink_to("../0000:03:00.0")
    found = io.gather(node.machine(), INBOX)
    assert [(function.pci, function.vfs) for function in found.functions] == [("0000:03:00.0", 2), ("0002:03:00.0", 0)]
