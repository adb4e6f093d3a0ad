# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.argspec import DISCOVER


def test_what_must_be_given() -> None:
    assert {name for name, option in DISCOVER.items() if option.get("required")} == {
        "hosts", "classes_dir", "directory"}
