# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills slurmctld in a lab host before each task of a run: AIDC_TEST_KILL is the command, a JSON list."""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: kill_slurmctld
type: aggregate
short_description: kills slurmctld before each task
description: [For tests only.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kill_slurmctld"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        subprocess.run(json.loads(os.environ["AIDC_TEST_KILL"]), check=False, capture_output=True, timeout=30)
