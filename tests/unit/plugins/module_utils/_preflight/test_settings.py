# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._preflight.settings import SettingsError, settings

VALUES: dict[str, t.Any] = {
    "supported_os": ["debian  13"], "python_min": "3.9", "require_time_sync": True, "max_offset_seconds": 1,
    "warn_offset_seconds": 0.05, "require_names": False, "disks": [{"path": "/", "free_gib": 0.5}],
    "free_inodes_percent": 5,
}


def test_settings() -> None:
    found = settings(VALUES)
    assert (found.supported_os, found.disks, found.python_min) == (("debian 13",), {"/": 0.5 * (1 << 30)}, (3, 9))
    assert (found.require_names, found.require_time_sync, found.max_offset_seconds) == (False, True, 1.0)


@pytest.mark.parametrize(("name", "value"), [
    ("supported_os", ["debian"]), ("supported_os", None), ("python_min", 3.9), ("python_min", "x"), ("disks", {"/": 5}),
    ("disks", [{"path": "/"}]), ("disks", [{"path": "/", "free_gib": "5"}]), ("max_offset_seconds", -1),
    ("warn_offset_seconds", None), ("free_inodes_percent", True)])
def test_the_message_names_the_variable(name: str, value: t.Any) -> None:
    with pytest.raises(SettingsError, match=f"preflight_{name}: got "):
        settings({**VALUES, name: value})


def test_not_a_mapping() -> None:
    with pytest.raises(SettingsError):
        settings([])
