# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot.options import complete
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import argspec

PORTS = [{"pci": "0000:03:00.0"}]


def read(**options: t.Any) -> tuple[dict[str, t.Any], list[Problem]]:
    bad: list[Problem] = []
    return complete(argspec.spec(), {"ports": PORTS, **options}, "roce_qos", bad), bad


def test_defaults_are_filled_in_at_all_depths() -> None:
    found, bad = read(cnp={"dscp": 46}, ets=None)
    assert bad == []
    assert (found["dscp"], found["cnp"], found["ets"]) == (26, {"dscp": 46, "priority": 6}, None)
    assert found["ports"][0]["pci"] == "0000:03:00.0" and found["ports"][0]["lossless"] is None
    assert set(found) == set(argspec.spec())


@pytest.mark.parametrize(("options", "text"), [
    ({"dscp": "26"}, "roce_qos.dscp: got '26', wanted type int"),
    ({"dscp": True}, "roce_qos.dscp: got True, wanted type int"),
    ({"lossless": 1}, "roce_qos.lossless: got 1, wanted type bool"),
    ({"trust": "port"}, "roce_qos.trust: got 'port', wanted one of dscp, pcp"),
    ({"unmanaged_groups": ["x"]}, "roce_qos.unmanaged_groups: got 'x', wanted one of dcbx"),
    ({"unmanaged_groups": "pfc"}, "wanted type list"),
    ({"ports": [5]}, "roce_qos.ports: got 5, wanted type dict"),
    ({"ports": [{"dscp": 26}]}, "roce_qos.ports.pci: got nothing, wanted a value"),
    ({"cnp": {"colour": "red"}}, "roce_qos.cnp.colour: got an unknown option"),
    ({"of_tomorrow": 1}, "roce_qos.of_tomorrow: got an unknown option"),
])
def test_what_does_not_fit_is_named(options: dict[str, t.Any], text: str) -> None:
    _found, bad = read(**options)
    assert len(bad) == 1 and text in bad[0].text() and "run playbooks/fabric.yml" in bad[0].hint


def test_an_int_is_a_float() -> None:
    bad: list[Problem] = []
    spec = {"a": {"type": "float", "default": 1.5}}
    assert (complete(spec, {"a": 2}, "x", bad), complete(spec, {}, "x", bad), bad) == ({"a": 2}, {"a": 1.5}, [])
