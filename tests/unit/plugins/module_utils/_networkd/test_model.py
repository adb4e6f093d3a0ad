# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import Link, Networkd, Saved


def test_lookups() -> None:
    saved = Saved("/a")
    networkd = Networkd("active", {"b": Link("b", network_file="/a"), "a": Link("a", network_file="/a"),
                                   "c": Link("c", network_file="/gone"), "d": Link("d")}, {"/a": saved})
    assert networkd.active
    assert networkd.of("a") is saved
    assert [networkd.of(name) for name in ("c", "d", "none", None)] == [None] * 4
    assert networkd.governed_by("/a") == ["a", "b"]
