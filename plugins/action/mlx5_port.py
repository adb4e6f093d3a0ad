# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction


class ActionModule(RecordingAction):
    """What the module has read at its end is a record of mlx5_info."""

    kind = "mlx5_info"
    module = "mlx5_port"

    def _is_fact(self, result: t.Mapping[str, t.Any]) -> bool:
        return isinstance(result.get("info"), t.Mapping)

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        return dict(data["info"])
