# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import parse


def test_links() -> None:
    text = json.dumps([
        {"ifname": "lo", "mtu": 65536, "flags": ["UP"], "addr_info": []},
        {"ifname": "rail0", "mtu": 4200, "flags": ["UP", "LOWER_UP"], "addr_info": [
            {"local": "192.0.2.1", "prefixlen": 24, "scope": "global"},
            {"local": "fe80::1", "prefixlen": 64, "scope": "link"}, {}]},
        {"ifname": "rail1", "mtu": 1500, "flags": []}, {}])
    assert parse.links(text, ["rail0", "rail1"]) == [
        ("ip", "link", "set", "dev", "rail0", "mtu", "4200"), ("ip", "link", "set", "dev", "rail0", "up"),
        ("ip", "addr", "replace", "192.0.2.1/24", "dev", "rail0"),
        ("ip", "link", "set", "dev", "rail1", "mtu", "1500")]


def test_routes() -> None:
    text = json.dumps([
        {"dst": "default", "gateway": "192.0.2.254", "dev": "rail0", "protocol": "static", "metric": 100},
        {"dst": "192.0.2.0/24", "dev": "rail0", "protocol": "kernel", "prefsrc": "192.0.2.1"},
        {"type": "local", "dst": "192.0.2.1", "dev": "rail0", "table": "local"},
        {"dst": "198.51.100.0/24", "gateway": "192.0.2.254", "dev": "rail0", "table": "101", "prefsrc": "192.0.2.1"},
        {"dst": "203.0.113.0/24", "dev": "eth0", "protocol": "static"}])
    assert parse.routes(text, 4, ["rail0"]) == [
        ("ip", "-4", "route", "replace", "default", "via", "192.0.2.254", "dev", "rail0", "metric", "100"),
        ("ip", "-4", "route", "replace", "198.51.100.0/24", "via", "192.0.2.254", "dev", "rail0", "table", "101", "src",
         "192.0.2.1")]
    assert parse.routes("", 6, ["rail0"]) == []


@pytest.mark.parametrize("text", ["garbage", "{}", "[1]", '[{"mtu": 1}]', '[{"ifname": "rail0"}]'])
def test_garbage_is_told_apart(text: str) -> None:
    with pytest.raises(ValueError):
        parse.links(text, ["rail0"])
