# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is particular to dcb; its plans are in golden/dcb.yml, its reading in test_io.py."""
from __future__ import annotations

from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.backend_dcb import Dcb

from tests.unit.plugins.module_utils._roce.fake import Qos


def test_only_what_is_asked_is_read_and_the_batch_file_goes_away(qos: Qos) -> None:
    seen: list[tuple[str, list[str]]] = []

    def answer(call: tuple[str, ...]) -> Result:
        seen.append((call[3], Path(call[3]).read_text(encoding="ascii").splitlines()))
        return qos.dcb(call)

    qos.node.override[("dcb",)] = answer
    states, problems = Dcb().read(qos.node.machine(), ["rail0", "rail1"], {"buffer"})
    assert problems == [] and states["rail0"]["buffer_total"] > 0
    assert seen[0][1] == [f"{kind} show dev {netdev}" for netdev in ("rail0", "rail1")
                          for kind in ("app", "dcbx", "buffer")]
    assert not Path(seen[0][0]).exists()


def test_no_port_is_no_call(tmp_path: Path) -> None:
    assert Dcb().read(Machine(tmp_path), [], {"pfc"}) == ({}, [])


def test_it_cannot_hand_a_port_to_the_firmware() -> None:
    assert "mlnx_qos -d fw" in str(Dcb().cannot("dcbx", "firmware")) and Dcb().cannot("dcbx", "host") is None
