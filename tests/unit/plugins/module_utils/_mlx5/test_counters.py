# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.counters import COUNTERS

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"


def test_each_counter_once_with_its_meaning() -> None:
    assert len({name for _folder, name, _meaning in COUNTERS}) == len(COUNTERS)
    assert {folder for folder, _name, _meaning in COUNTERS} == {"counters", "hw_counters"}
    assert all(meaning for _folder, _name, meaning in COUNTERS)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
def test_names_of_the_field() -> None:
    lines = (SAMPLES / "hw_counters-1.txt").read_text(encoding="utf-8").split()
    seen = {line.partition(":")[0] for line in lines}
    ours = {name for folder, name, _meaning in COUNTERS if folder == "hw_counters"}
    assert {"local_ack_timeout_err", "np_cnp_sent", "out_of_sequence", "packet_seq_err", "rnr_nak_retry_err",
            "rp_cnp_handled", "rp_cnp_ignored", "out_of_buffer", "np_ecn_marked_roce_packets"} <= seen & ours
