# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.intent import OPTIONS

from tests.unit.plugins.module_utils._roce.conftest import params


def test_a_port_may_have_every_option_of_a_class_and_defaults_none_of_them() -> None:
    spec = argspec.spec()
    port = spec["ports"]["options"]
    assert set(port) == {"pci", "cnp", *OPTIONS} and set(OPTIONS) <= set(spec)
    assert not any("default" in option for option in port.values())


def test_timeout_is_at_least_a_second() -> None:
    assert [argspec.timeout(params(tool_timeout_seconds=value)) for value in (0, 30)] == [1.0, 30.0]
