# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import model


@pytest.mark.parametrize(("text", "wanted"), [
    ("00000008:01:00.0", "0008:01:00.0"), ("0018:01:00", "0018:01:00.0"), ("0000:9B:00.0", "0000:9b:00.0"),
    ("9b:00.0", "0000:9b:00.0"), ("00010000:E1:00.0", "10000:e1:00.0")])
def test_addresses(text: str, wanted: str) -> None:
    assert model.pci_address(text) == wanted


@pytest.mark.parametrize("text", ["", "...", "GPU 0", "0000:9b"])
def test_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        model.pci_address(text)


@pytest.mark.parametrize(("one", "other", "same"), [
    ("580.126.09", "580.126.9", True), ("580.126.09", "580.126", True), ("580.30", "580.126.09", False),
    ("580.126.09", "580.126.10", False), ("580", "580.126.09", False), ("550.120", "550.120", True)])
def test_versions(one: str, other: str, same: bool) -> None:
    assert model.same_version(one, other) is same


def test_a_gpu_of_which_nothing_was_said() -> None:
    assert set(model.Smi.no_data()) == set(model.Smi("0000:01:00.0").as_data())
    assert set(model.Smi.no_data().values()) == {None}
