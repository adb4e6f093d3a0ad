# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction


class ActionModule(RecordingAction):
    kind = "roce_qos"

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        """The ports as they are: in check mode ``after`` is only what they would be."""
        ports = data["before" if self._task.check_mode else "after"]
        return {"ports": ports, **{key: data[key] for key in ("backend", "unsupported", "findings")}}
