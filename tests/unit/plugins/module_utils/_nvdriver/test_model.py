# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Package
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import KernelModule, Node, Request, Step


def test_kernels() -> None:
    node = Node(kernel="6.8.0-9-generic", kernels=("6.8.0-9-generic", "6.8.0-31-generic"))
    assert (node.next_kernel, node.newer_kernel) == ("6.8.0-31-generic",) * 2
    assert node.both_kernels == ("6.8.0-9-generic", "6.8.0-31-generic")
    alone = Node(kernel="6.8.0-9-generic")
    assert (alone.next_kernel, alone.newer_kernel, alone.both_kernels) == (alone.kernel, None, (alone.kernel,))
    # A kernel that was taken away while it runs.
    assert Node(kernel="6.8.0-31-generic", kernels=("6.8.0-9-generic",)).newer_kernel is None


def test_what_is_there() -> None:
    node = Node(kernel="a", modules={"a": KernelModule("580.1")}, packages=(Package("x", "1"),))
    assert (node.on_disk().version, node.on_disk("b").version) == ("580.1", None)
    assert node.package("x") == Package("x", "1") and node.package("y") is None


def test_request_and_step() -> None:
    assert Request("595.45.04").branch == 595
    assert Step(("modprobe", "nvidia"), "why", "driver").as_dict() == {
        "command": ["modprobe", "nvidia"], "disruptive": "driver", "why": "why"}
