# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Request, Want


def test_request() -> None:
    params = {"ports": [{"pci": " 0000:C1:00.0 ", "mtu_bytes": 4200}], "runtime": True, "persistent": False,
              "verify_rdma_mtu": True, "disruption_policy": "force", "allow_management": True}
    assert argspec.request(params) == Request((Want("0000:c1:00.0", 4200),), True, False, True, "force", True)


def test_timeout_is_never_none() -> None:
    assert [argspec.timeout({"tool_timeout_seconds": value}) for value in (10, 0, -5)] == [10.0, 1.0, 1.0]
