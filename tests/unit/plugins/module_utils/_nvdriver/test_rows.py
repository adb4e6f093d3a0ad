# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of the field that a driver gets into, each with the legal state next to it."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import OPTIONS_FILE

from tests.unit.plugins.driver_node import (
    KERNEL,
    NEXT,
    OLD,
    RHEL,
    VERSION,
    DriverNode,
    bare,
    settled,
    tray,
)
from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.holders import process, slurm_step


def objects(found: t.Mapping[str, t.Any], key: str = "findings") -> list[str]:
    return [one["object"] for one in found[key]]


def refused(node: DriverNode, **options: t.Any) -> list[str]:
    """Objects of the problems; a refusal changes nothing."""
    with pytest.raises(AidcError) as caught:
        node.call(**options)
    assert caught.value.done == []
    return [one.object for one in caught.value.problems]


def test_a_settled_node_has_no_finding(tmp_path: Path) -> None:
    node = settled(tmp_path)
    found = node.call()
    assert (found["changed"], found["findings"], found["deferred"], found["install"]) == (False, [], [], [])
    assert (found["reboot_required"], found["reboot_allowed"]) == (False, True)


# -- versions and packages ------------------------------------------------------------------------------------------


def test_userspace_and_disk_moved_below_a_running_driver(tmp_path: Path) -> None:
    """An unattended upgrade: the four versions no longer agree [aws-parallelcluster#3034]."""
    node = settled(tmp_path, OLD)
    node.install(VERSION)
    slurm_step(node.root, 4711, "python3", "/dev/nvidia0")
    found = node.call()
    assert {"nvidia on disk", "libnvidia-ml", "nvidia"} <= set(objects(found))
    assert (found["after"]["loaded"], found["after"]["on_disk"]) == (OLD, VERSION)
    assert found["reboot_required"] is True and found["reboot_allowed"] is True
    assert [one["holder"] for one in found["deferred"]] == ["Slurm job 4242 step 0 (pid 4711 python3)"]
    assert found["reboot_reasons"] == [
        f"{OLD} is loaded, {VERSION} is on the disk; not reloaded: Slurm job 4242 step 0 (pid 4711 python3) has "
        "/dev/nvidia0 open"]


def test_the_same_upgrade_on_an_idle_node_is_loaded(tmp_path: Path) -> None:
    node = settled(tmp_path, OLD)
    node.install(VERSION)
    found = node.call()
    assert (found["after"]["loaded"], found["reboot_required"], found["findings"]) == (VERSION, False, [])


def test_a_helper_of_another_version(tmp_path: Path) -> None:
    node = settled(tmp_path, make=tray)
    node.installed["nvidia-imex"][0] = f"{OLD}-1"
    found = node.call(manage=False)
    assert objects(found) == ["package nvidia-imex"]
    assert found["before"]["helpers"] == {"nvidia-imex": OLD}
    assert (found["changed"], found["install"]) == (False, [])


@pytest.mark.parametrize("state", ["half-installed", "half-configured", "unpacked"])
def test_dpkg_was_interrupted(tmp_path: Path, state: str) -> None:
    node = settled(tmp_path)
    node.installed["nvidia-dkms-580-open"][2] = state
    assert refused(node) == ["package nvidia-dkms-580-open"]
    assert not node.ran("apt-mark")


def test_a_package_that_waits_for_a_trigger_is_none(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.installed["nvidia-dkms-580-open"][2] = "triggers-pending"
    assert node.call()["changed"] is False


def test_a_package_that_somebody_else_holds(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.installed["nvidia-utils-580"] = [f"{OLD}-1ubuntu1", "hold", "installed"]
    assert refused(node) == ["package nvidia-utils-580"]
    found = node.call(replace_holds=True)
    assert "nvidia-utils-580=580.159.04-1ubuntu1" in found["install"]


def test_a_library_that_came_along_and_that_somebody_else_holds(tmp_path: Path) -> None:
    """Not of the set itself, but apt could not go on."""
    node = bare(tmp_path)
    node.installed["libnvidia-decode-580"] = [f"{OLD}-1ubuntu1", "hold", "installed"]
    node.installed["nvidia-container-toolkit"] = ["1.17.8-1", "hold", "installed"]
    assert refused(node) == ["package libnvidia-decode-580"]


def test_our_own_holds_do_not_stop_the_next_version(tmp_path: Path) -> None:
    node = settled(tmp_path, OLD)
    assert node.installed["nvidia-utils-580"][1] == "hold"
    found = node.call()
    assert found["missing_packages"] == ["libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580-open"]
    assert found["commands"] == [["write", "/etc/apt/preferences.d/aidc-nvidia"]]
    assert (found["after"]["loaded"], found["reboot_required"]) == (OLD, False)


def test_what_the_packages_bring_along_is_held_as_well(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.install(VERSION, "libnvidia-decode-580")
    node.installed["nvidia-container-toolkit"] = ["1.17.8-1", "install", "installed"]
    held = node.call()["after"]["held"]
    assert held == ["libnvidia-compute-580", "libnvidia-decode-580", "nvidia-dkms-580-open", "nvidia-utils-580"]
    assert node.call(hold=False)["changed"] is False, "no hold is taken away"


def test_without_holds_it_is_told(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.install()
    found = node.call(hold=False)
    assert not node.ran("apt-mark") and "package nvidia-dkms-580-open" in objects(found)


def test_a_branch_that_was_emptied(tmp_path: Path) -> None:
    """The names of R570 are there, and pull R580 [driver-slurm-k8s.md 0.1]."""
    node = bare(tmp_path)
    names = ("libnvidia-compute-570", "nvidia-utils-570", "nvidia-dkms-570-open")
    node.publish("580.126.09", *names)
    with pytest.raises(AidcError) as caught:
        node.call(version="570.211.01")
    assert [one.object for one in caught.value.problems] == [f"package {name}" for name in names]
    assert all("transitional" in one.hint for one in caught.value.problems)
    node.publish("570.211.01", *names)
    assert node.call(version="570.211.01")["install"][0] == "libnvidia-compute-570=570.211.01-1ubuntu1"


def test_an_installed_transitional_package(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.installed["nvidia-driver-570-server"] = [f"{VERSION}-1ubuntu1", "install", "installed"]
    found = node.call()
    assert objects(found) == ["package nvidia-driver-570-server"]
    node.installed["nvidia-driver-580-server"] = node.installed.pop("nvidia-driver-570-server")
    assert objects(node.call()) == []


def test_a_version_that_no_repository_has(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.repository = {}
    assert len(refused(node)) == 3
    # Before package_sources has run, check mode knows names only.
    assert node.call(check_mode=True)["install"][0] == "libnvidia-compute-580=580.159.04-*"


def test_a_newer_build_of_the_repository_is_not_taken(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.publish("580.178.04")
    assert node.call()["install"][0] == "libnvidia-compute-580=580.159.04-1ubuntu1"


def test_the_driver_of_the_other_repository(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.installed["nvidia-headless-no-dkms-580-server-open"] = ["580.126.09-0ubuntu0.24.04.1", "install", "installed"]
    assert refused(node) == ["package nvidia-headless-no-dkms-580-server-open"]


# -- kernels --------------------------------------------------------------------------------------------------------


def test_no_module_for_the_next_kernel(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.kernel(NEXT, 9e9)
    node.installed[f"linux-headers-{NEXT}"] = ["1", "install", "installed"]
    found = node.call()
    assert (found["reboot_allowed"], found["changed"]) == (False, False)
    assert objects(found, "reboot_blockers") == [f"nvidia of kernel {NEXT}"]
    node.disk[NEXT] = (VERSION, "open")
    assert node.call()["reboot_allowed"] is True


def test_the_headers_of_the_next_kernel_belong_to_the_set(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.kernel(NEXT, 9e9)
    assert node.call()["install"] == [f"linux-headers-{NEXT}"]


def test_a_build_for_the_next_kernel_that_failed(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.kernel(NEXT, 9e9)
    node.install()
    node.dkms = f"nvidia/{VERSION}, {KERNEL}, x86_64: installed\nnvidia/{VERSION}, {NEXT}, x86_64: added\n"
    del node.disk[NEXT]
    found = node.call()
    assert found["reboot_allowed"] is False
    assert f"nvidia/{VERSION} added" in found["reboot_blockers"][0]["hint"]


def test_an_older_module_for_the_next_kernel(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.kernel(NEXT, 9e9)
    node.install()
    node.disk[NEXT] = (OLD, "open")
    assert node.call()["reboot_blockers"][0]["got"] == OLD


def test_installed_and_no_module_at_all(tmp_path: Path) -> None:
    """The package's script failed to build, and said so to nobody."""
    node = bare(tmp_path)
    node.install()
    node.disk = {}
    assert refused(node) == [f"nvidia of kernel {KERNEL}"]


def test_only_the_next_kernel_has_it(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.kernel(NEXT)
    node.install()
    del node.disk[KERNEL]
    found = node.call()
    assert found["reboot_reasons"] == [f"kernel {KERNEL} has no module of the driver, {NEXT} has {VERSION}"]
    assert (found["reboot_required"], found["reboot_allowed"]) == (True, True)


@pytest.mark.parametrize(("said", "enrolled", "stops"), [
    ("SecureBoot enabled\n", False, True), ("SecureBoot enabled\n", True, False),
    ("SecureBoot disabled\n", False, False)])
def test_secure_boot(tmp_path: Path, said: str, enrolled: bool, stops: bool) -> None:
    node = bare(tmp_path)
    node.secure_boot = said
    node.put("/var/lib/shim-signed/mok/MOK.der", "")
    words = "is already enrolled" if enrolled else "is not enrolled"
    node.override[("mokutil", "--test-key")] = lambda call: ok(f"{call[2]} {words}\n")
    if stops:
        assert refused(node) == ["Secure Boot"]
    else:
        assert node.call()["install"]
    # Modules of the distribution are signed.
    node.publish(VERSION, "nvidia-utils-580-server", "nvidia-headless-no-dkms-580-server-open")
    found = node.call(repository="distribution")
    assert found["install"][-1] == "linux-modules-nvidia-580-server-open-generic"


# -- module options, nouveau ----------------------------------------------------------------------------------------


def test_options_are_merged_and_loaded(tmp_path: Path) -> None:
    node = settled(tmp_path)
    found = node.call(module_options={"NVreg_EnableStreamMemOPs": True, "RegistryDwords": "RMForceStaticBar1=1;"},
                      registry_dwords={"PeerMappingOverride": 1})
    assert node.get(OPTIONS_FILE).splitlines()[-1] == (
        'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1;RMForceStaticBar1=1;"')
    assert [command[:2] for command in found["commands"]] == [
        ["write", OPTIONS_FILE], ["update-initramfs", "-u"], ["modprobe", "-r"], ["modprobe", "-r"],
        ["modprobe", "nvidia"], ["modprobe", "nvidia_uvm"]]
    assert (found["findings"], found["reboot_required"]) == ([], False)


def test_two_files_set_registry_dwords(tmp_path: Path) -> None:
    """They do not add up: the last one wins, and a reload for ours would never end [driver-slurm-k8s.md 0.9]."""
    node = settled(tmp_path)
    node.put("/etc/modprobe.d/zz-gds.conf", 'options nvidia NVreg_RegistryDwords="RMForceStaticBar1=1;"\n')
    dwords = {"PeerMappingOverride": 1}
    found = node.call(registry_dwords=dwords)
    names = objects(found)
    assert names.count("NVreg_RegistryDwords") == 4 and "/etc/modprobe.d/zz-gds.conf" in str(found["findings"])
    assert ["modprobe", "nvidia"] not in found["commands"]
    assert node.call(registry_dwords=dwords)["changed"] is False
    (node.root / "etc/modprobe.d/zz-gds.conf").unlink()
    found = node.call(registry_dwords=dwords)
    assert (found["findings"], ["modprobe", "nvidia"] in found["commands"]) == ([], True)
    assert node.call(registry_dwords=dwords)["changed"] is False


def test_another_file_with_another_option_is_legal(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.put("/etc/modprobe.d/site.conf", "options nvidia NVreg_CreateImexChannel0=0\n")
    found = node.call(registry_dwords={"PeerMappingOverride": 1})
    assert found["findings"] == []


def test_an_option_that_the_module_does_not_have(tmp_path: Path) -> None:
    node = settled(tmp_path)
    found = node.call(module_options={"PeerMappingOverride": 1})
    assert "NVreg_PeerMappingOverride" in objects(found)


def test_nouveau_drives_the_gpus(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.install()
    node.put("/sys/module/nouveau/initstate", "live\n")
    found = node.call()
    assert "blacklist nouveau" in found["after"]["options_file"]
    assert ["update-initramfs", "-u", "-k", "all"] in found["commands"]
    assert not node.ran("modprobe")
    assert (found["reboot_required"], found["reboot_allowed"]) == (True, True)
    assert found["reboot_reasons"] == ["nouveau is loaded, and drives the GPUs until a boot without it"]
    assert "module nouveau" in objects(found)
    assert node.call()["changed"] is False, "a pending reboot is no change"


def test_an_initramfs_that_a_killed_run_left_behind(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.kernel(KERNEL)
    found = node.call()
    assert found["commands"] == [["update-initramfs", "-u", "-k", "all"]]
    assert node.call()["changed"] is False


def test_an_initramfs_that_cannot_be_built(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.override[("update-initramfs",)] = lambda call: failed(1, "E: /boot is full")
    with pytest.raises(AidcError) as caught:
        node.call()
    assert "/boot is full" in str(caught.value) and len(caught.value.done) == 2
    del node.override[("update-initramfs",)]
    assert node.call()["commands"] == [["update-initramfs", "-u", "-k", "all"]]


# -- fabric manager, IMEX -------------------------------------------------------------------------------------------


def test_fabric_manager_on_an_l40s(tmp_path: Path) -> None:
    node = settled(tmp_path)
    node.installed["nvidia-fabricmanager"] = [f"{VERSION}-1", "hold", "installed"]
    node.units["nvidia-fabricmanager.service"] = ("loaded", "failed", "enabled")
    assert set(objects(node.call())) == {"nvidia-fabricmanager.service", "package nvidia-fabricmanager"}
    found = node.call(board="nvswitch")
    assert objects(found) == ["nvidia-fabricmanager.service"], "there it must run"
    node.units["nvidia-fabricmanager.service"] = ("loaded", "active", "enabled")
    assert objects(node.call(board="nvswitch")) == []


@pytest.mark.parametrize(("board", "more"), [
    ("pcie", []), ("nvl", ["nvidia-imex"]), ("nvswitch", ["nvidia-fabricmanager"])])
def test_helpers_by_board(tmp_path: Path, board: str, more: list[str]) -> None:
    node = bare(tmp_path)
    node.publish(VERSION, "nvidia-fabricmanager")
    names = node.call(board=board)["missing_packages"]
    assert [name for name in names if name in ("nvidia-imex", "nvidia-fabricmanager")] == more


def test_the_pci_id_tells_the_board(tmp_path: Path) -> None:
    assert "nvidia-imex" in tray(tmp_path).call()["missing_packages"]


def test_a_set_without_the_helper(tmp_path: Path) -> None:
    assert refused(bare(tmp_path), board="nvl", repository="distribution")[0] == "package set ubuntu-own"


# -- reload ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def upgraded(tmp_path: Path) -> DriverNode:
    node = settled(tmp_path, OLD)
    node.install(VERSION)
    return node


def test_services_are_stopped_for_a_reload_and_started_again(upgraded: DriverNode) -> None:
    upgraded.units["nvidia-persistenced.service"] = ("loaded", "active", "enabled")
    upgraded.hold_module("nvidia", "gdrdrv")
    process(upgraded.root, 77, "nvidia-persiste", "/dev/nvidia0")
    found = upgraded.call()
    assert [command for command in found["commands"] if command[0] in ("systemctl", "modprobe")] == [
        ["systemctl", "stop", "nvidia-persistenced.service"], ["modprobe", "-r", "gdrdrv"],
        ["modprobe", "-r", "nvidia_uvm"], ["modprobe", "-r", "nvidia"], ["modprobe", "nvidia"],
        ["modprobe", "nvidia_uvm"], ["modprobe", "gdrdrv"], ["systemctl", "start", "nvidia-persistenced.service"]]
    assert upgraded.units["nvidia-persistenced.service"][1] == "active"
    assert {step["disruptive"] for step in found["steps"]} == {"none", "driver"}


def test_services_that_waited_for_the_driver(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.install(VERSION, "nvidia-fabricmanager")
    for name in ("nvidia-persistenced", "nvidia-fabricmanager", "nvidia-imex"):
        node.units[f"{name}.service"] = ("loaded", "inactive", "enabled")
    commands = node.call(True, board="nvswitch")["commands"]
    assert commands[-2:] == [["systemctl", "start", "nvidia-fabricmanager.service"],
                             ["systemctl", "start", "nvidia-persistenced.service"]]
    assert node.call()["commands"][-1] == ["systemctl", "start", "nvidia-persistenced.service"]
    assert node.units["nvidia-imex.service"][1] == "inactive"


def hold_by(comm: str, *files: str) -> t.Callable[[DriverNode], t.Any]:
    return lambda node: process(node.root, 77, comm, *files)


WAYS: dict[str, tuple[t.Callable[[DriverNode], t.Any], str]] = {
    "job": (lambda node: slurm_step(node.root, 77, "python3", "/dev/nvidia2"),
            "Slurm job 4242 step 0 (pid 77 python3)"),
    "process": (hold_by("python3", "/dev/nvidia-uvm"), "pid 77 python3"),
    # It may start what holds the GPU at any time, and is not ours to stop.
    "slurmd": (hold_by("slurmd", "/dev/nvidiactl"), "pid 77 slurmd"),
    "module": (lambda node: node.hold_module("nvidia", "nvidia_vgpu_vfio"), "nvidia_vgpu_vfio"),
    "step without a GPU": (lambda node: slurm_step(node.root, 77, "sleep"), "Slurm job 4242 step 0 (pid 77 sleep)"),
    "nobody that can be seen": (lambda node: node.put("/sys/module/nvidia/refcnt", "3\n"), "2 unknown references"),
}


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_pending_with_who_is_in_the_way(upgraded: DriverNode, way: str, check_mode: bool) -> None:
    arrange, holder = WAYS[way]
    upgraded.call(reload=False)
    arrange(upgraded)
    found = upgraded.call(check_mode)
    assert [one["holder"] for one in found["deferred"]] == [holder]
    assert (found["changed"], found["reboot_required"], found["reboot_allowed"]) == (False, True, True)
    assert holder in found["reboot_reasons"][0]
    assert not upgraded.ran("modprobe")


def test_policies(upgraded: DriverNode) -> None:
    slurm_step(upgraded.root, 77, "sleep")
    assert upgraded.call(disruption_policy="never")["deferred"] == [
        {"holder": "disruption_policy", "why": "is never"}]
    assert upgraded.call(disruption_policy="force")["after"]["loaded"] == VERSION


def test_force_does_not_help_against_an_open_device(upgraded: DriverNode) -> None:
    slurm_step(upgraded.root, 77, "python3", "/dev/nvidia0")
    assert upgraded.call(disruption_policy="force")["after"]["loaded"] == OLD


def test_a_tray_whose_domain_is_in_use(tmp_path: Path) -> None:
    node = settled(tmp_path, OLD, tray)
    node.install(VERSION, "nvidia-imex")
    node.units["nvidia-imex.service"] = ("loaded", "active", "enabled")
    assert [one["holder"] for one in node.call()["deferred"]] == ["nvidia-imex.service"]
    found = node.call(reload_in_domain=True)
    assert ["systemctl", "stop", "nvidia-imex.service"] in found["commands"]
    assert found["after"]["loaded"] == VERSION


def test_a_reload_that_stops_half_way_is_undone(upgraded: DriverNode) -> None:
    upgraded.units["nvidia-persistenced.service"] = ("loaded", "active", "enabled")
    said = "modprobe: FATAL: Module nvidia is in use."
    upgraded.override[("modprobe", "-r", "nvidia")] = lambda call: failed(1, said)
    with pytest.raises(AidcError) as caught:
        upgraded.call()
    assert "Module nvidia is in use" in str(caught.value)
    assert caught.value.done[-1] == ["modprobe", "-r", "nvidia_uvm"]
    assert upgraded.units["nvidia-persistenced.service"][1] == "active"
    assert upgraded.ran("modprobe", "nvidia_uvm")


def test_fewer_gpus_after_a_reload(upgraded: DriverNode) -> None:
    upgraded.cards.pop("0000:86:00.0")
    with pytest.raises(AidcError) as caught:
        upgraded.call()
    assert [(one.object, one.got) for one in caught.value.problems] == [("GPUs of the driver", "3")]


# -- known bad ------------------------------------------------------------------------------------------------------


def test_a_known_bad_version_is_refused_where_it_would_be_installed(tmp_path: Path) -> None:
    node = tray(tmp_path)
    node.page_size = 65536
    with pytest.raises(AidcError) as caught:
        node.call()
    assert "known bad (pages)" in str(caught.value) and "issue 1" in str(caught.value)
    found = node.call(allow_known_bad=["pages"])
    assert found["install"] and f"driver {VERSION}" in objects(found)
    node.page_size = 4096
    assert f"driver {VERSION}" not in objects(node.call())


def test_a_node_that_runs_it_goes_on(tmp_path: Path) -> None:
    node = settled(tmp_path, make=tray)
    node.page_size = 65536
    found = node.call()
    assert (found["changed"], objects(found)) == (False, [f"driver {VERSION}"])


def test_a_row_that_warns_stops_nobody(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.publish("570.211.01", "libnvidia-compute-570", "nvidia-utils-570", "nvidia-dkms-570-open")
    found = node.call(version="570.211.01")
    assert found["install"] and "driver 570.211.01" in objects(found)


# -- distributions --------------------------------------------------------------------------------------------------


def test_rhel(tmp_path: Path) -> None:
    """The stream first; what it shows comes with the next read. A lock of ours goes for the next version."""
    node = bare(tmp_path, RHEL, "dnf")
    predicted, found = node.call(True), node.call()
    assert (predicted["commands"], predicted["after"]) == (found["commands"], found["after"])
    assert found["commands"][0] == ["dnf", "-q", "-y", "module", "enable", "nvidia-driver:580-open"]
    assert ["dracut", "-f", "--regenerate-all"] in found["commands"]
    assert found["install"] == ["nvidia-driver-cuda-3:580.159.04-1.el9", "kmod-nvidia-open-dkms-3:580.159.04-1.el9",
                                f"kernel-devel-{KERNEL}"]
    assert found["after"]["pin_file"] is None
    node.install()
    found = node.call()
    assert ["dnf", "-q", "-y", "versionlock", "add", "kmod-nvidia-open-dkms", "nvidia-driver-cuda"] in found["commands"]
    assert found["after"]["held"] == ["kmod-nvidia-open-dkms", "nvidia-driver-cuda"]
    assert node.call()["changed"] is False
    node.publish("580.178.04")
    found = node.call(version="580.178.04")
    assert found["commands"] == [
        ["dnf", "-q", "-y", "versionlock", "delete", "kmod-nvidia-open-dkms", "nvidia-driver-cuda"]]
    assert found["install"][0] == "nvidia-driver-cuda-3:580.178.04-1.el9"


def test_another_stream_is_replaced(tmp_path: Path) -> None:
    node = bare(tmp_path, RHEL, "dnf")
    node.do_dnf(("dnf", "module", "enable", "nvidia-driver:open-dkms"))
    assert [command[4] for command in node.call()["commands"][:2]] == ["reset", "enable"]


def test_dgx_os_is_only_judged(tmp_path: Path) -> None:
    node = settled(tmp_path, OLD)
    node.put("/etc/dgx-release", 'DGX_SWBUILD_VERSION="7.2.3"\n')
    found = node.call()
    assert (found["managed"], found["changed"], found["install"], found["findings"]) == (False, False, [], [])


@pytest.mark.parametrize(("os_release", "what"), [
    ('ID=sles\nVERSION_ID="15.6"\n', "distribution"), ('ID=ubuntu\nVERSION_ID="26.04"\n', "distribution"),
    ('ID=ubuntu\nVERSION_ID="24.04"\n', "driver branch")])
def test_what_no_set_knows_is_refused(tmp_path: Path, os_release: str, what: str) -> None:
    node = bare(tmp_path, os_release)
    assert refused(node, version="610.43.02" if what == "driver branch" else VERSION) == [what]
    assert node.call(manage=False)["changed"] is False
