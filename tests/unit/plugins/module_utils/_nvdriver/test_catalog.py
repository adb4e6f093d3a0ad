# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Package, Pci
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import catalog
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import Node, Request
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import Os

from tests.unit.plugins.driver_node import KNOWN_BAD, SETS

REQUEST = Request("580.159.04", board="pcie", sets=tuple(catalog.package_set(row) for row in SETS))
NODE = Node(os=Os("ubuntu", "24.04", family="Debian"), architecture="x86_64", kernel="6.8.0-31-generic",
            gpus=(Pci("0000:01:00.0", "10de:26b9"),))


@pytest.mark.parametrize("change", [
    {"strange": 1}, {"manager": "zypper"}, {"pinned": {"desktop": ["x"]}}, {"source": ""}, {"releases": []}])
def test_a_set_that_is_not_understood(change: dict[str, t.Any]) -> None:
    with pytest.raises(AidcError, match="package set ubuntu"):
        catalog.package_set({**SETS[0], **change})


@pytest.mark.parametrize("change", [{"when": {"moon": "full"}}, {"when": {}}, {"action": "pray"}, {"source": None}])
def test_a_bad_row_that_is_not_understood(change: dict[str, t.Any]) -> None:
    with pytest.raises(AidcError, match="known bad pages"):
        catalog.known_bad({**KNOWN_BAD[0], **change})


def test_a_row_that_is_none() -> None:
    with pytest.raises(AidcError, match="a row with keys"):
        catalog.known_bad("text")


@pytest.mark.parametrize(("when", "matches"), [
    ({"architecture": "x86_64"}, True), ({"architecture": "aarch64"}, False),
    ({"page_size_bytes": 65536}, False), ({"branches": [580]}, True), ({"branches": [590]}, False),
    ({"below": "580.159.10"}, True), ({"below": "580.159.04"}, False), ({"pci_ids": ["10de:26b9"]}, True),
    ({"pci_ids": ["10de:2941"]}, False), ({"flavour": "open"}, True), ({"flavour": "proprietary"}, False),
    ({"distributions": ["ubuntu"]}, True), ({"distributions": ["rhel"]}, False),
    ({"kernel_from": "6.8.0-31"}, True), ({"kernel_from": "6.8.0-32"}, False),
    # All of them.
    ({"branches": [580], "distributions": ["rhel"]}, False)])
def test_conditions(when: dict[str, t.Any], matches: bool) -> None:
    row = catalog.known_bad({**KNOWN_BAD[0], "when": when})
    assert catalog.bad(replace(REQUEST, known_bad=(row,)), NODE) == ([row] if matches else [])


def test_the_next_kernel_counts() -> None:
    row = catalog.known_bad({**KNOWN_BAD[0], "when": {"kernel_from": "6.8.0-40"}})
    assert catalog.bad(replace(REQUEST, known_bad=(row,)), NODE) == []
    node = replace(NODE, kernels=("6.8.0-31-generic", "6.8.0-40-generic"))
    assert catalog.bad(replace(REQUEST, known_bad=(row,)), node) == [row]


@pytest.mark.parametrize(("package", "wanted", "same"), [
    ("580.159.04-1ubuntu1", "580.159.04", True), ("3:580.159.04-1.el9", "580.159.04", True),
    ("580.159.04", "580.159.04", True), ("580.159.03-1", "580.159.04", False), ("580.159-1", "580.159.04", False)])
def test_versions(package: str, wanted: str, same: bool) -> None:
    assert catalog.is_version(package, wanted) is same


@pytest.mark.parametrize(("name", "version", "moved"), [
    ("nvidia-headless-no-dkms-570-server-open", "580.126.09-0ubuntu0.24.04.1", True),
    ("nvidia-utils-580", "580.159.04-1ubuntu1", False), ("nvidia-firmware-570-570.86.15", "570.86.15-1", False),
    ("linux-modules-nvidia-580-server-open-generic", "6.8.0-40.40", False), ("nvidia-imex", "580.159.04-1", False)])
def test_transitional(name: str, version: str, moved: bool) -> None:
    assert catalog.is_transitional(name, version) is moved


@pytest.mark.parametrize(("release", "flavour"), [
    ("6.8.0-31-generic", "generic"), ("6.8.0-1024-nvidia-64k", "nvidia-64k"), ("6.12.0", "generic")])
def test_kernel_flavour(release: str, flavour: str) -> None:
    assert catalog.kernel_flavour(release) == flavour


def test_packages_of_the_other_repository_only() -> None:
    chosen = catalog.choose(REQUEST, NODE)
    assert chosen is not None
    node = replace(NODE, packages=(
        Package("nvidia-utils-580", "580.126.09"), Package("nvidia-utils-570-server", "570.1.2"),
        Package("nvidia-container-toolkit", "1.17.8")))
    assert [one.name for one in catalog.foreign(chosen, REQUEST, node)] == ["nvidia-utils-570-server"]


def test_driver_versions() -> None:
    assert catalog.has_driver_version(Package("libnvidia-decode-580", "580.126.09"))
    assert not catalog.has_driver_version(Package("nvidia-container-toolkit", "1.17.8"))
    assert not catalog.has_driver_version(Package("dkms", "580.1"))
