# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import factory


@pytest.mark.parametrize(("there", "ofed", "chosen"), [
    (("usr/sbin/dcb",), False, "dcb"), (("usr/sbin/dcb", "usr/bin/mlnx_qos"), False, "dcb"),
    (("usr/sbin/dcb", "usr/bin/mlnx_qos"), True, "mlnx_qos"), (("usr/bin/mlnx_qos",), False, "mlnx_qos"),
    (("usr/sbin/dcb",), True, "dcb"),
])
def test_chosen_by_what_is_there(tmp_path: Path, there: tuple[str, ...], ofed: bool, chosen: str) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if ofed:
        (tmp_path / "sys/class/net/rail0/ecn").mkdir(parents=True)
    assert factory.choose(Machine(tmp_path), "auto", ["rail0"]).name == chosen
    assert factory.choose(Machine(tmp_path), "dcb", ["rail0"]).name == "dcb"


def test_neither_names_both_packages(tmp_path: Path) -> None:
    with pytest.raises(AidcError, match=r"neither dcb nor mlnx_qos.*iproute2 .5.11 or later. or mlnx-tools"):
        factory.choose(Machine(tmp_path), "auto", [])
