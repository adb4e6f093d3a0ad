# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import Request

DEFAULTS: dict[str, t.Any] = {name: option["default"] for name, option in argspec.imex_domain().items()}


def test_defaults() -> None:
    assert argspec.request(DEFAULTS) == Request()
    assert (argspec.timeout({"tool_timeout_seconds": 0}), argspec.timeout(DEFAULTS)) == (1.0, 20.0)


def test_values() -> None:
    found = argspec.request({**DEFAULTS, "nodes": ["2001:DB8::1", "g1"], "wait_seconds": -3, "config": {
        "IMEX_CMD_ENABLED": True, "SERVER_PORT": 50001, "BIND_INTERFACE_IP": ""}})
    assert (found.nodes, found.wait_seconds) == (("2001:db8::1", "g1"), 0)
    assert found.config == {"IMEX_CMD_ENABLED": "1", "SERVER_PORT": "50001", "BIND_INTERFACE_IP": ""}
