# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.model import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Device


def test_device_by_address() -> None:
    device = Device("0000:03:00.0")
    assert Node((device,)).device("0000:03:00.0") is device
    assert Node((device,)).device("0000:04:00.0") is None
