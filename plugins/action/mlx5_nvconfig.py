# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction


class ActionModule(RecordingAction):
    kind = "mlx5_nvconfig"

    def _is_fact(self, result: t.Mapping[str, t.Any]) -> bool:
        """What check mode says of a device that it would write is a prediction."""
        return not (self._task.check_mode and result.get("changed"))
