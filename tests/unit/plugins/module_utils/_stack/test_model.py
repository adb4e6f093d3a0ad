# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import (
    BLOCKERS,
    STACK_MODULES,
    Dependant,
    Module,
    Node,
    kernel_order,
)


@pytest.mark.parametrize("releases", [
    ["6.1.0-9-amd64", "6.1.0-31-amd64", "6.10.0-1-amd64"],
    ["5.14.0-427.el9.x86_64", "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-503.el9.x86_64"],
    ["5.15.0-170-generic", "5.15.0-1045-nvidia", "6.8.0-31-generic", "6.8.0-31-generic-64k"],
])
def test_kernels_in_order(releases: list[str]) -> None:
    assert sorted(reversed(releases), key=kernel_order) == releases


def test_next_kernel() -> None:
    node = Node(kernel="6.1.0-31-amd64", kernels=("6.1.0-9-amd64", "6.1.0-31-amd64", "6.1.0-40-amd64"))
    assert (node.next_kernel, node.newer_kernel) == ("6.1.0-40-amd64", "6.1.0-40-amd64")
    old = Node(kernel="6.2.0-1-amd64", kernels=("6.1.0-9-amd64",))
    assert (old.next_kernel, old.newer_kernel) == ("6.1.0-9-amd64", None)
    assert (Node(kernel="x").next_kernel, Node(kernel="x").newer_kernel) == ("x", None)


def test_roles_of_dependants() -> None:
    assert not BLOCKERS & STACK_MODULES
    assert [Dependant(name, ()).role for name in ("ib_uverbs", "nvidia_peermem", "mine")] == [
        "stack", "blocker", "other"]


def test_words() -> None:
    assert Module().text() == "no driver"
    assert Module("inbox").text() == "the kernel's own driver"
    assert Module("ofed", "25.10-1.7.1").text() == "that of DOCA-OFED (25.10-1.7.1)"
