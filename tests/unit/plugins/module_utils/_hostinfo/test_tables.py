# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import tables


@pytest.mark.parametrize(("pci_id", "kind", "name"), [
    ("15b3:1021", "connectx", "ConnectX-7"), ("15b3:a2dc", "bluefield", "BlueField-3"),
    ("15b3:101e", "virtual", "ConnectX VF"), ("15b3:0218", "flash_recovery", "card in flash recovery"),
    ("15b3:ffff", "other", None),
])
def test_nics(pci_id: str, kind: str, name: str | None) -> None:
    assert (tables.nic_kind(pci_id), tables.nic_name(pci_id)) == (kind, name)


def test_a_virtual_function_may_have_the_id_of_a_card() -> None:
    assert tables.nic_kind("15b3:1021", is_vf=True) == "virtual"


def test_gpus() -> None:
    """26b5 is the L40, not the L40S; a new id has no name and is no error."""
    assert [tables.gpu_name(pci_id) for pci_id in ("10de:2941", "10de:26b9", "10de:26b5", "10de:9999")] == [
        "GB200", "L40S", "L40", None]
