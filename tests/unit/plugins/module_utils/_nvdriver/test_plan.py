# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Driver, Package, Pci
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import catalog, plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import (
    HOLDS_FILE,
    OPTIONS_FILE,
    PIN_FILE,
    File,
    KernelModule,
    Node,
    Request,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.options import options_text, pin_text
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import Build, Os

from tests.unit.plugins.driver_node import KERNEL, KNOWN_BAD, NEXT, SETS, VERSION

SET = catalog.package_set(SETS[0])
OWN = catalog.package_set(SETS[1])
REQUEST = Request(VERSION, board="pcie", sets=(SET, OWN), known_bad=tuple(map(catalog.known_bad, KNOWN_BAD)))
NAMES = ("libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580-open")
PACKAGES = (*(Package(name, VERSION, held=False) for name in NAMES), Package("dkms", "3.0.11", held=False),
            Package(f"linux-headers-{KERNEL}", "6.8.0", held=False))
NODE = Node(
    os=Os("ubuntu", "24.04", family="Debian"), architecture="x86_64", kernel=KERNEL, kernels=(KERNEL,),
    gpus=(Pci("0000:41:00.0", "10de:26b9", driver="nvidia"),), driver=Driver(VERSION, "open", True, VERSION, "open"),
    packages=PACKAGES, modules={KERNEL: KernelModule(VERSION, "open")}, images={KERNEL: 5.0},
    options_file=File(options_text(REQUEST), 5.0), pin_file=File(pin_text(REQUEST), 5.0))


def commands(steps: t.Iterable[t.Any]) -> list[tuple[str, ...]]:
    return [step.command for step in steps]


@pytest.mark.parametrize(("version", "good"), [
    ("580.159.04", True), ("580.142", True), ("580", False), ("latest", False), ("", False), ("580.1.2.3", False),
    ("580.159.04-1", False)])
def test_a_full_version(version: str, good: bool) -> None:
    assert [one.object for one in plan.values(replace(REQUEST, version=version))] == ([] if good else ["version"])


def test_an_override_that_is_no_row() -> None:
    assert plan.values(replace(REQUEST, allow_known_bad=("pages",))) == []
    assert [one.object for one in plan.values(replace(REQUEST, allow_known_bad=("page",)))] == ["allow_known_bad"]


def test_nothing_is_missing() -> None:
    assert plan.missing(SET, REQUEST, NODE) == []
    assert plan.check(SET, REQUEST, NODE, False) == []
    assert plan.file_steps(SET, REQUEST, NODE) == []


def test_another_version_is_missing_and_another_headers_version_is_not() -> None:
    node = replace(NODE, packages=(replace(PACKAGES[0], version="580.126.09"), *PACKAGES[1:]))
    assert [name.name for name in plan.missing(SET, REQUEST, node)] == [NAMES[0]]
    assert plan.installs(SET, REQUEST, node) == [f"{NAMES[0]}={VERSION}-*"]
    known = replace(node, available={NAMES[0]: ("580.178.04-1ubuntu1", f"{VERSION}-1ubuntu1")})
    assert plan.installs(SET, REQUEST, known) == [f"{NAMES[0]}={VERSION}-1ubuntu1"]


def test_files_and_initramfs() -> None:
    bare = replace(NODE, options_file=File(), pin_file=File())
    rebuild = ("update-initramfs", "-u", "-k", "all")
    assert commands(plan.file_steps(SET, REQUEST, bare)) == [("write", PIN_FILE), ("write", OPTIONS_FILE), rebuild]
    assert commands(plan.file_steps(SET, REQUEST, replace(bare, images={}))) == [
        ("write", PIN_FILE), ("write", OPTIONS_FILE)]
    stale = replace(NODE, images={KERNEL: 4.0, NEXT: 9.0})
    steps = plan.file_steps(SET, REQUEST, stale)
    assert commands(steps) == [rebuild] and KERNEL in steps[0].why and NEXT not in steps[0].why
    rhel = replace(stale, os=Os("rhel", "9.4", family="RedHat"))
    assert commands(plan.file_steps(SET, REQUEST, rhel)) == [("dracut", "-f", "--regenerate-all")]


def test_holds() -> None:
    steps = plan.hold_steps(SET, REQUEST, NODE)
    assert commands(steps) == [("write", HOLDS_FILE), ("apt-mark", "hold", *sorted(NAMES))]
    held = replace(NODE, packages=tuple(replace(one, held=True) for one in PACKAGES),
                   our_holds=frozenset(NAMES), holds_file=File(plan.holds_text(NAMES)))
    assert plan.hold_steps(SET, REQUEST, held) == []
    assert plan.hold_steps(SET, replace(REQUEST, hold=False), NODE) == []
    # Held by somebody else in the wanted version: theirs it stays.
    theirs = replace(held, our_holds=frozenset(), holds_file=File())
    assert plan.hold_steps(SET, REQUEST, theirs) == []


def test_the_kernel_is_held_with_precompiled_modules() -> None:
    request = replace(REQUEST, repository="distribution")
    names = ("nvidia-utils-580-server", "nvidia-headless-no-dkms-580-server-open")
    node = replace(NODE, packages=(
        *(Package(name, VERSION, held=False) for name in names),
        Package("linux-modules-nvidia-580-server-open-generic", "6.8.0", held=False),
        Package("linux-image-generic", "6.8.0", held=False)))
    assert plan.to_hold(OWN, request, node) == sorted((
        *names, "linux-modules-nvidia-580-server-open-generic", "linux-image-generic"))


def test_what_a_reboot_needs() -> None:
    assert plan.reboot_blockers(SET, REQUEST, NODE) == []
    two = replace(NODE, kernels=(KERNEL, NEXT))
    assert [one.object for one in plan.reboot_blockers(SET, REQUEST, two)] == [f"nvidia of kernel {NEXT}"]
    there = replace(two, modules={**NODE.modules, NEXT: KernelModule(VERSION, "open")})
    assert plan.reboot_blockers(SET, REQUEST, there) == []
    for state, note in (("built", ""), ("installed", "WARNING! Diff between built and installed module!")):
        odd = replace(there, builds=(Build("nvidia", VERSION, NEXT, state, note),))
        assert [one.object for one in plan.reboot_blockers(SET, REQUEST, odd)] == [f"dkms nvidia/{VERSION}"]
    old = replace(there, builds=(Build("nvidia", "580.126.09", NEXT, "built"), Build("zfs", "2", NEXT, "added")))
    assert plan.reboot_blockers(SET, REQUEST, old) == []
    assert plan.reboot_blockers(SET, REQUEST, replace(two, gpus=())) == []


def test_unmanaged_the_next_kernel_must_have_some_driver() -> None:
    request = replace(REQUEST, manage=False, version="")
    two = replace(NODE, kernels=(KERNEL, NEXT), modules={**NODE.modules, NEXT: KernelModule("570.211.01", "open")})
    assert plan.reboot_blockers(None, request, two) == []
    assert plan.reboot_blockers(None, request, replace(two, modules=NODE.modules))[0].wanted == VERSION


def test_a_known_bad_row_and_where_the_node_stands() -> None:
    request = replace(REQUEST, known_bad=tuple(
        catalog.known_bad({**KNOWN_BAD[0], "when": {"branches": [580]}, "action": action, "id": action})
        for action in ("refuse", "warn")))
    node = replace(NODE, driver=Driver(), modules={}, packages=())
    refused = [one.got for one in plan.check(SET, request, node, True) if "known bad" in one.got]
    assert [got.split(":")[0] for got in refused] == ["known bad (refuse)"]
    for running in (replace(node, driver=NODE.driver), replace(node, modules=NODE.modules)):
        assert not any("known bad" in one.got for one in plan.check(SET, request, running, True))
        assert sum("known bad" in one.got for one in plan.findings(SET, request, running)) == 2
    allowed = replace(request, allow_known_bad=("refuse",))
    assert not any("known bad" in one.got for one in plan.check(SET, allowed, node, True))


def test_unreadable_things_stop_a_managed_node_only() -> None:
    from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
    node = replace(NODE, problems=(Problem("modinfo", "x", "y"),))
    assert [one.object for one in plan.check(SET, REQUEST, node, False)] == ["modinfo"]


def test_no_set() -> None:
    node = replace(NODE, os=Os("sles", "15.6", family="sles"))
    assert [one.object for one in plan.check(None, REQUEST, node, False)] == ["distribution"]
    assert plan.check(None, replace(REQUEST, manage=False), node, False) == []
