# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import (
    CONNECTED,
    Domain,
    Member,
    Request,
    Unit,
    plain_address,
)


@pytest.mark.parametrize(("text", "plain"), [
    ("192.0.2.1", "192.0.2.1"), (" 2001:DB8:0::1 ", "2001:db8::1"), ("g1", None), ("192.0.2.01", None), ("", None)])
def test_addresses(text: str, plain: str | None) -> None:
    assert plain_address(text) == plain


def test_the_text_of_the_list_and_the_keys() -> None:
    request = Request("nvl1", ("192.0.2.2", "192.0.2.1"), config={"LOG_LEVEL": "3"})
    assert request.nodes_text == "192.0.2.2\n192.0.2.1\n"
    assert request.keys == {"IMEX_NODE_CONFIG_FILE": "/etc/nvidia-imex/nodes_config.cfg", "IMEX_CMD_ENABLED": "1",
                            "LOG_LEVEL": "3"}
    assert (request.on_host, Request(owner="dra").on_host) == (True, False)
    assert (request.of_domain(), Request().of_domain()) == ("nvlink_domain nvl1", "the domain")


def test_units() -> None:
    assert Unit("loaded", "activating", "enabled").is_running and not Unit("loaded", "failed", "enabled").is_running
    assert Unit("masked", "inactive", "masked").is_masked and Unit("loaded", "active", "masked-runtime").is_masked
    assert not Unit("loaded", "active", "enabled-runtime").is_enabled


def test_a_domain_as_data() -> None:
    domain = Domain({1: Member("b", "UNAVAILABLE", ""), 0: Member("a", "READY")},
                    {(0, 0): CONNECTED, (0, 1): "x"}, "UP")
    assert domain.as_dict() == {"state": "UP", "links": 2, "links_connected": 1, "nodes": [
        {"address": "a", "status": "READY", "version": None}, {"address": "b", "status": "UNAVAILABLE", "version": ""}]}
