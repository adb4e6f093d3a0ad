# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import argspec

from tests.unit.plugins.driver_node import KNOWN_BAD, SETS

DEFAULTS = {name: option.get("default") for name, option in argspec.nvidia_driver().items()}


def test_defaults() -> None:
    found = argspec.request(DEFAULTS)
    assert (found.version, found.flavour, found.board, found.manage, found.reload) == ("", "open", None, True, True)
    assert (found.sets, found.known_bad, found.module_options) == ((), (), {})


def test_all_of_it() -> None:
    found = argspec.request({
        **DEFAULTS, "version": " 580.159.04 ", "package_sets": SETS, "known_bad": KNOWN_BAD, "board": "nvl",
        "module_options": {"NVreg_CreateImexChannel0": False}, "registry_dwords": {"A": 1}})
    assert (found.version, found.branch, found.board) == ("580.159.04", 580, "nvl")
    assert [one.id for one in found.sets] == ["ubuntu", "ubuntu-own", "rhel9"]
    assert found.module_options == {"CreateImexChannel0": "0", "RegistryDwords": "A=1;"}


def test_a_key_with_two_values() -> None:
    with pytest.raises(AidcError, match="RegistryDwords A"):
        argspec.request({**DEFAULTS, "module_options": {"RegistryDwords": "A=2"}, "registry_dwords": {"A": 1}})


@pytest.mark.parametrize(("given", "seconds"), [(0, 1.0), (30, 30.0)])
def test_timeout(given: int, seconds: float) -> None:
    assert argspec.timeout({"tool_timeout_seconds": given}) == seconds
