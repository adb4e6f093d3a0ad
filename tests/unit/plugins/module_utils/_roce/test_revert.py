# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The undo of a whole configuration gives the port back as it was, tool by tool."""
from __future__ import annotations

import copy
import dataclasses
import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import io as revert_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.configure import configure

from tests.unit.plugins.fake import ok
from tests.unit.plugins.module_utils._roce.conftest import request_of
from tests.unit.plugins.module_utils._roce.fake import Qos


def rig(qos: Qos) -> None:
    """The rail is the way to the host, and timers can be set."""
    qos.node.default_device = "rail0"
    qos.node.link_fields["rail0"] = {"mtu": 4200, "flags": ["UP"]}
    qos.node.override[("systemd-run",)] = lambda call: ok()
    plain = qos.node.run

    def run(argv: t.Sequence[str], seconds: float) -> Result:
        if argv[0] == "systemctl" and str(argv[2]).startswith("aidc-revert-"):
            return ok("active\n")
        if tuple(argv[:2]) == ("ip", "-j") and argv[-1] == "all":
            return ok(json.dumps([]))
        if tuple(argv[:3]) in (("ip", "link", "set"), ("ip", "addr", "replace")):
            return ok()
        return plain(argv, seconds)

    qos.node.run = run  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize("backend", ["dcb", "mlnx_qos"])
def test_undone_as_it_was(qos: Qos, backend: str) -> None:
    rig(qos)
    before = copy.deepcopy(qos.ports["rail0"])
    tos = "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"
    request = dataclasses.replace(request_of(backend=backend, allow_management=True), revert_seconds=60)
    result = configure(qos.node.machine(), request, False)
    assert result["armed"]["state"] == "armed" and qos.ports["rail0"]["pfc"][3] and qos.node.get(tos) == "104"
    (record,) = revert_io.records(qos.node.machine())
    revert_io.undo_now(qos.node.machine(), record)
    after = qos.ports["rail0"]
    # Without a share a class that is not ets reads 100 in the driver (mlx5-roce 4.3), which the stand-in does not know.
    assert {**after, "app": {}, "tc_bw": 0} == {**before, "app": {}, "tc_bw": 0} and not any(after["app"].values())
    assert qos.node.get(tos) == "0"


def test_a_step_that_lies_is_undone_at_once(qos: Qos) -> None:
    rig(qos)
    before = copy.deepcopy(qos.ports["rail0"])
    qos.refuse.add("ets")
    request = dataclasses.replace(request_of(allow_management=True), revert_seconds=60)
    with pytest.raises(AidcError, match=r"ets of 0000:03:00.0 .*restored on the host"):
        configure(qos.node.machine(), request, False)
    assert qos.ports["rail0"]["pfc"] == before["pfc"] and revert_io.records(qos.node.machine()) == []


def test_what_does_not_stop_the_link_arms_nothing(qos: Qos) -> None:
    rig(qos)
    request = dataclasses.replace(request_of(allow_management=True, unmanaged_groups=["trust", "dscp_map", "pfc"]),
                                  revert_seconds=60)
    result = configure(qos.node.machine(), request, False)
    assert (result["changed"], result["armed"]) == (True, None)


def test_lldpad_is_started_again(qos: Qos) -> None:
    rig(qos)
    qos.lldpad = "active"
    enable = ("systemctl", "enable", "--now", "lldpad.service")
    qos.node.override[enable] = lambda call: ok()
    request = dataclasses.replace(request_of(allow_management=True, take_over=True), revert_seconds=60)
    configure(qos.node.machine(), request, False)
    (record,) = revert_io.records(qos.node.machine())
    revert_io.undo_now(qos.node.machine(), record)
    assert qos.node.calls.count(enable) == 1
