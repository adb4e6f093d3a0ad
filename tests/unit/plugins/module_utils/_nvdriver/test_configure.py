# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import HOLDS_FILE, PIN_FILE

from tests.unit.plugins.driver_node import NEXT, OLD, RHEL, VERSION, DriverNode, bare, settled, tray
from tests.unit.plugins.fake import ok
from tests.unit.plugins.holders import slurm_step


def fresh(root: Path) -> DriverNode:
    return bare(root)


def installed(root: Path) -> DriverNode:
    node = bare(root)
    node.install()
    return node


def upgraded(root: Path) -> DriverNode:
    node = settled(root, OLD)
    node.install()
    return node


def in_use(root: Path) -> DriverNode:
    node = upgraded(root)
    slurm_step(root, 77, "python3", "/dev/nvidia0")
    return node


def two_kernels(root: Path) -> DriverNode:
    node = bare(root)
    node.kernel(NEXT)
    node.install()
    return node


def rhel(root: Path) -> DriverNode:
    node = bare(root, RHEL, "dnf")
    node.install()
    return node


def rack(root: Path) -> DriverNode:
    node = tray(root)
    node.install(VERSION, "nvidia-imex")
    return node


@pytest.mark.parametrize("make", [fresh, installed, upgraded, in_use, two_kernels, rhel, rack])
def test_check_mode_then_run_then_nothing(tmp_path: Path, make: t.Callable[[Path], DriverNode]) -> None:
    node = make(tmp_path)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    options: dict[str, t.Any] = {"registry_dwords": {"PeerMappingOverride": 1}}
    predicted = node.call(True, **options)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files
    assert not any(call[0] in ("apt-mark", "modprobe", "update-initramfs", "dracut") for call in node.calls)
    real = node.call(**options)
    for key in ("changed", "before", "after", "commands", "steps", "diff", "install", "deferred", "reboot_required"):
        assert predicted[key] == real[key], key
    assert real["changed"] is True
    again = node.call(**options)
    assert (again["changed"], again["commands"], again["before"]) == (False, [], again["after"])


def test_our_record_of_holds_is_written_before_the_holds(tmp_path: Path) -> None:
    node = installed(tmp_path)
    commands = node.call()["commands"]
    assert commands.index(["write", HOLDS_FILE]) < [one[0] for one in commands].index("apt-mark")
    assert json.loads(node.get(HOLDS_FILE))["held"] == ["libnvidia-compute-580", "nvidia-dkms-580-open",
                                                        "nvidia-utils-580"]


def test_a_hold_that_had_no_effect_is_found(tmp_path: Path) -> None:
    node = installed(tmp_path)
    node.override[("apt-mark",)] = lambda call: ok()
    with pytest.raises(AidcError, match="got not held, wanted held"):
        node.call()


def test_a_module_that_did_not_come_is_found(tmp_path: Path) -> None:
    node = installed(tmp_path)
    node.override[("modprobe", "nvidia")] = lambda call: ok()
    with pytest.raises(AidcError, match="module nvidia: got none loaded"):
        node.call()


def test_a_file_that_somebody_else_writes_is_found(tmp_path: Path) -> None:
    node = installed(tmp_path)

    def rebuild(call: tuple[str, ...]) -> t.Any:
        node.put(PIN_FILE, "Package: *\n")
        return node.do_initramfs(call)

    node.override[("update-initramfs",)] = rebuild
    with pytest.raises(AidcError, match="does somebody else write it"):
        node.call()


def test_wrong_values_are_told_before_the_host_is_asked(tmp_path: Path) -> None:
    node = bare(tmp_path)
    with pytest.raises(AidcError, match="Nothing was changed"):
        node.call(version="latest")
    assert node.calls == []


def test_a_reload_that_is_not_wanted_is_pending(tmp_path: Path) -> None:
    found = upgraded(tmp_path).call(reload=False)
    assert found["deferred"] == [{"holder": "reload", "why": "is false"}]
    assert (found["after"]["loaded"], found["reboot_required"]) == (OLD, True)


def test_before_and_after_name_all_versions(tmp_path: Path) -> None:
    node = settled(tmp_path, OLD, tray)
    node.install(VERSION, "nvidia-imex")
    found = node.call()
    keys = ("loaded", "on_disk", "helpers", "flavour")
    assert [found["before"][key] for key in keys] == [OLD, VERSION, {"nvidia-imex": VERSION}, "open"]
    assert [found["after"][key] for key in keys] == [VERSION, VERSION, {"nvidia-imex": VERSION}, "open"]
    assert found["users_known"] is True
