# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes


@pytest.fixture(autouse=True)
def own_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark of this test's own: a sweep must not find the runs of whoever else works on this machine."""
    monkeypatch.setattr(processes, "MARK_VARIABLE", f"AIDC_UNIT_TEST_{os.getpid()}")
