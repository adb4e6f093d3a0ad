# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import tables


def test_rows_have_sources_and_stand_once() -> None:
    assert len({one.pci_id for one in tables.BOARDS}) == len(tables.BOARDS)
    assert all(source for source in [*(one.source for one in tables.BOARDS), *(one.source for one in tables.HELPERS)])
    assert [one.bit for one in tables.EVENTS] == [2 ** power for power in range(9)]
    assert {one.bit for one in tables.EVENTS if not one.normal} == {0x20, 0x40, 0x80}
    assert {state for _words, state in tables.ERROR_TEXTS} <= set(tables.EXIT_STATES)


@pytest.mark.parametrize(("name", "wanted"), [
    ("nvidia-imex", "nvidia-imex"), ("nvidia-imex-570", "nvidia-imex"), ("libnvidia-nscq-570", "libnvidia-nscq"),
    ("nvidia-fabricmanager", "nvidia-fabricmanager"), ("nvidia-fabricmanager-dev-570", None), ("nvidia-open", None),
    ("nvidia-persistenced", None)])
def test_helpers(name: str, wanted: str | None) -> None:
    found = tables.helper(name)
    assert (found.name if found else None) == wanted


def test_boards() -> None:
    gb200, l40s = tables.board("10de:2941"), tables.board("10de:26b9")
    assert gb200 is not None and (gb200.kind, gb200.flavour) == ("nvl", "open")
    assert l40s is not None and (l40s.kind, l40s.flavour) == ("pcie", None)
    assert tables.board("10de:ffff") is None
