# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import model
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError


def test_options_are_read_back() -> None:
    chosen = model.Options(("ports", "gpus"), 4, "device_files", 1 << 30, (model.Disk("/var", 10),), 1, 2, False, True,
                           9)
    assert model.options(json.loads(chosen.text())) == chosen
    assert model.options({}) == model.Options()


def test_gpus_are_checked_only_with_a_number() -> None:
    assert "gpus" not in model.Options().enabled and "gpus" in model.Options(gpus=0).enabled


@pytest.mark.parametrize("data", [
    [], {"schema_version": 2}, {"checks": ["port"]}, {"gpus": "4"}, {"gpus": True}, {"fail_after": 0}, {"unknown": 1},
    {"disks": [{"path": "var"}]}, {"disks": [{"path": "/", "min_free_percent": 101}]}, {"disks": ["/"]},
    {"gpus_from": "guess"}, {"time_limit_seconds": 60}, {"resume": "yes"}, {"pass_after": True}])
def test_wrong_options_are_named(data: t.Any) -> None:
    with pytest.raises(AidcError, match="/etc/aidc/health.json: got"):
        model.options(data)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"checks": []}', '{"checks": {"ports": {}}}', "null"])
def test_a_memory_that_cannot_be_read_is_none(text: str | None) -> None:
    assert model.memory(text) == {}


def test_the_memory_is_read_back() -> None:
    counts = {"ports": model.Count(2, 0, True, "down"), "disk": model.Count(0, 3)}
    assert model.memory(model.memory_text(counts, "now")) == counts
