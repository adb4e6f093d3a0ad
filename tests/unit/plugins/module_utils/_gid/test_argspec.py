# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.model import Request, Want

PARAMS = {"ports": [{"pci": " 0000:C1:00.0 "}, {"pci": "0000:c2:00.0", "subnets": ["203.0.113.0/24"]}],
          "subnets": ["198.51.100.0/24"], "address_family": "ipv4", "roce_version": "v2", "roce_mode": None,
          "missing": "fail", "wait_seconds": -1.0}


def test_request() -> None:
    assert argspec.request(PARAMS) == Request(
        (Want("0000:c1:00.0", ("198.51.100.0/24",)), Want("0000:c2:00.0", ("203.0.113.0/24",))), "ipv4", "v2", None,
        0.0, True)
    assert not argspec.request({**PARAMS, "missing": "report"}).must_have
