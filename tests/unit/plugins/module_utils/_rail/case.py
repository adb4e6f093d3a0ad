# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of whole calls share: a request for two rails, and how to make it."""
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import Request, Want

from tests.unit.plugins.rail_node import RailNode

OWNERS = ("networkd", "netplan", "networkmanager")
SYSCTLS = (("arp_ignore", 1), ("arp_announce", 2), ("rp_filter", 2))
WANTS = (
    Want(0, "0000:03:00.0", "198.51.100.1/24", 4200, "198.51.100.254", ("198.51.0.0/16",), 101, 1001),
    Want(1, "0002:03:00.0", "203.0.113.1/24", 9000),
)
REQUEST = Request(WANTS, sysctls=SYSCTLS)


def run(node: RailNode, request: Request = REQUEST, check_mode: bool = False) -> dict[str, t.Any]:
    return configure(node.machine(), request, check_mode)


def mutations(node: RailNode) -> list[tuple[str, ...]]:
    verbs = {"reload", "reconfigure", "generate", "load", "up", "reapply"}
    return [call for call in node.calls if verbs & set(call)]
