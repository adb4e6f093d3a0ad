# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is particular to mlnx_qos; its plans are in golden/mlnx_qos.yml, its reading in test_io.py."""
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.backend_mlnx_qos import MlnxQos

from tests.unit.plugins.module_utils._roce.fake import Qos


def test_one_call_for_each_port_with_unused_classes(qos: Qos) -> None:
    states, problems = MlnxQos().read(qos.node.machine(), ["rail0", "rail1"], {"pfc"})
    assert problems == [] and set(states) == {"rail0", "rail1"}
    assert qos.calls("mlnx_qos") == [("mlnx_qos", "-i", netdev, "-a") for netdev in ("rail0", "rail1")]


def test_trust_and_map_are_two_calls(qos: Qos) -> None:
    """The tool refuses both options in one."""
    want = {"trust": "dscp", "dscp_map": [0] * 64}
    trust = MlnxQos().commands("rail0", "trust", {"trust": "pcp"}, want)
    assert trust[0].argv == ("mlnx_qos", "-i", "rail0", "--trust", "dscp") and trust[0].groups == ("trust",)
