# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.versions import (
    FEATURES,
    OLDEST,
    Version,
    VersionError,
    has,
    parse,
)


@pytest.mark.parametrize(("text", "version"), [
    ("24.11.5", (24, 11)), ("22.05.8", (22, 5)), ("25.05", (25, 5)), ("slurm 24.11.5\n", (24, 11)),
    ("slurm-wlm 22.05.8", (22, 5)), ("24.05.0-0rc1", (24, 5)), (24.11, (24, 11)),
])
def test_versions(text: t.Any, version: tuple[int, int]) -> None:
    assert parse(text) == Version(*version)


@pytest.mark.parametrize("text", ["", None, "latest", "5.1", "v24.11", 24])
def test_what_is_no_version(text: t.Any) -> None:
    with pytest.raises(VersionError, match="is not a version of Slurm"):
        parse(text)


def test_every_row_has_a_source_and_is_newer_than_the_oldest() -> None:
    assert all(feature.source and feature.what and feature.since > OLDEST for feature in FEATURES.values())
    assert (str(Version(24, 5)), has(Version(24, 5), "block_topology"), has(Version(23, 11), "block_topology")) == (
        "24.05", True, False)
