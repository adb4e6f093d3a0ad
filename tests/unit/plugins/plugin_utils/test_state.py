# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import state_dir


@pytest.mark.parametrize(("variables", "folder"), [
    ({}, None),
    ({"inventory_dir": None}, None),
    ({"inventory_dir": "/srv/inventory"}, "/srv/inventory/.state"),
    ({"inventory_dir": "/srv/inventory", "aidc_state_dir": "/X"}, "/x"),
    ({"inventory_dir": "/srv/inventory", "aidc_state_dir": ""}, None),
])
def test_where_the_state_is(variables: dict[str, t.Any], folder: str | None) -> None:
    assert state_dir(variables, str.lower) == folder
