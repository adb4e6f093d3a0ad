# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory says of a rail."""
from __future__ import annotations

import json
import typing as t

import pytest

from plugins.module_utils._audit import expect
from plugins.module_utils._host.errors import AidcError
from tests.unit.plugins.module_utils._audit.fleet import GB200


def wants(**values: t.Any) -> expect.Want:
    """Of rail 1, through the document and back."""
    own = {**GB200.values(0), **values}
    document = {"schema_version": 1, "policies": [expect.policy(own)],
                "hosts": {"h": {"pool": expect.pool(own), "policy": 0, "rails": {}}}}
    (host,) = expect.load(json.loads(json.dumps(document)))
    return host.rails[1].want


@pytest.mark.parametrize(("values", "field", "wanted"), [
    ({}, "mtu", 4200), ({"rail_network_mtu_bytes": 4500}, "mtu", 4500), ({}, "frame", 4222),
    ({"mlx5_port_rails": [{"rail": 0, "pci": "0000:03:00.0"}, {"rail": 1, "pci": "0001:03:00.0", "mtu_bytes": 9000}]},
     "mtu", 9000),
    ({"mlx5_port_mode": "off", "rail_network_mode": False}, "mtu", None), ({}, "pfc", "3"),
    ({"roce_qos_lossless": False}, "pfc", "none"), ({"roce_qos_mode": "off"}, "pfc", None),
    ({"roce_qos_dcbx_owner": "firmware"}, "pfc", None), ({"roce_qos_unmanaged_groups": ["pfc"]}, "pfc", None),
    ({"roce_qos_rails": [{"rail": 1, "pci": "0001:03:00.0", "priority": 4}]}, "pfc", "4"),
    ({"roce_qos_dscp": 24}, "cm_dscp", 24), ({}, "verbs_dscp", 26), ({}, "nccl_dscp", 26),
    ({"nccl_gate_environment": {"NCCL_IB_TC": "0x6a"}}, "nccl_dscp", 26),
    ({"nccl_gate_environment": {"NCCL_IB_TC": "-1", "NCCL_IB_GID_INDEX": "-1"}}, "nccl_dscp", None),
    ({"nccl_gate_environment": {"NCCL_IB_GID_INDEX": "-1"}}, "gid_index", None),
    ({"nccl_gate_environment": {"NCCL_IB_GID_INDEX": 3}}, "gid_index", 3),
    ({"nccl_gate_environment": {"NCCL_IB_ADDR_FAMILY": "AF_INET6"}}, "nccl_family", "ipv6"),
    ({"nccl_gate_environment": {"NCCL_IB_TC": "many"}}, "nccl_dscp", None),
    ({"roce_gid_mode": False}, "version", None), ({"roce_gid_roce_version": "v1"}, "version", "IB/RoCE v1"),
    ({"roce_gid_roce_mode": "v2"}, "cm_mode", "v2"), ({"mlx5_port_admin_state": "down"}, "up", False),
    ({"node_class_rail_speed_gbps": 0}, "speed_gbps", None), ({"fabric_leaf_names": ["a", "b"]}, "leaf", "b"),
    ({"fabric_leaf_names": ["a"]}, "leaf", None), ({"roce_qos_allow_management": True}, "management", True),
    ({"fabric_switch_mtu_bytes": 0, "fabric_switch_dscp": None, "fabric_switch_priority": None,
      "fabric_switch_lossless": None}, "switch_told", False),
    ({"fabric_boot_mode": "off"}, "boot", False), ({"aidc_state_max_age_hours": 48}, "max_age_hours", 48.0),
])
def test_variables(values: dict[str, t.Any], field: str, wanted: t.Any) -> None:
    assert getattr(wants(**values), field) == wanted


@pytest.mark.parametrize(("values", "name"), [
    ({}, "gb200/nvlink18"), ({"fabric_name": "east"}, "gb200/nvlink18/east"),
    ({"node_class_nvlink_domain_trays": 0}, "gb200"), ({"node_class_name": None}, "unclassed/nvlink18"),
])
def test_pools(values: dict[str, t.Any], name: str) -> None:
    assert expect.pool({**GB200.values(0), **values}) == name


def test_unsound_qos_is_an_error() -> None:
    with pytest.raises(AidcError):
        expect.policy({**GB200.values(0), "roce_qos_priority": 6})


def test_hosts_without_rails() -> None:
    assert expect.policy({}) == {"common": expect.policy({})["common"], "rails": {}}
