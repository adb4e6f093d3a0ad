# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction

_DEEDS = {"before", "after", "commands", "steps", "diff"}


class ActionModule(RecordingAction):
    kind = "rdma_stack"

    def _is_fact(self, result: t.Mapping[str, t.Any]) -> bool:
        """What check mode says of a driver that it would restart is a prediction."""
        return not (self._task.check_mode and result.get("changed"))

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        return {key: value for key, value in data.items() if key not in _DEEDS}
