# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.plugins.module_utils._rail.case import OWNERS
from tests.unit.plugins.rail_node import RailNode, rail_node


@pytest.fixture(params=OWNERS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> RailNode:
    return rail_node(tmp_path, request.param)
