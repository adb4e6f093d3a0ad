# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.plugins.fake import FakeNode, two_rails


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return two_rails(tmp_path)
