# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack import argspec

PARAMS: dict[str, t.Any] = {name: option.get("default") for name, option in argspec.rdma_stack().items()}


def test_request() -> None:
    request = argspec.request({**PARAMS, "packages": {"Debian": ["a", "b", "a"]}, "programs": ["x", "x"],
                               "flavour": "doca_ofed", "doca_version": "3.2.1", "restart": True})
    assert request.packages == {"Debian": ("a", "b")}
    assert (request.programs, request.doca_profile, request.restart) == (("x",), "doca-ofed", True)
    assert argspec.timeout({"tool_timeout_seconds": 0}) == 1.0


@pytest.mark.parametrize("names", ["a", {"a": 1}, [1], [""], None])
def test_packages_that_are_no_names(names: t.Any) -> None:
    with pytest.raises(AidcError, match="packages: Debian: got .*, wanted a list of package names"):
        argspec.request({**PARAMS, "packages": {"Debian": names}})
