# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import nccl_gate


def test_without_its_action_plugin_it_says_where_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"pool": "p", "first": {}, "run_id": "p-1", "hosts": [{"name": "a"}], "rails": [{"rail": 0}],
                 "gpus_per_host": 4, "min_busbw_gbps": 1, "report_dir": "/x"}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        nccl_gate.main()
    assert "controller" in json.loads(capsys.readouterr().out)["msg"]
