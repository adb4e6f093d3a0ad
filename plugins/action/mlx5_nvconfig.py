# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction


class ActionModule(RecordingAction):
    kind = "mlx5_nvconfig"

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        """In check mode what would be written counts as written in ``state``, which is a prediction."""
        before = {entry["pci"]: entry["parameters"] for entry in data.get("before") or ()}
        if not self._task.check_mode or not data.get("commands"):
            return data
        devices = [{**device, "parameters": [
            {**one, "state": "differs"} if one["state"] in ("set", "pending")
            and before[device["pci"]].get(one["name"]) != one["wanted"] else one
            for one in device["parameters"]]} for device in data["devices"]]
        return {**data, "devices": devices}
