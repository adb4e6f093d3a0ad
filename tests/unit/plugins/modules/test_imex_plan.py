# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import imex_plan


def test_it_does_not_run_on_a_host(capsys: pytest.CaptureFixture[str]) -> None:
    with patch_module_args({}), pytest.raises(SystemExit):
        imex_plan.main()
    assert "aidc.gpu_cluster.imex_plan" in json.loads(capsys.readouterr().out)["msg"]
