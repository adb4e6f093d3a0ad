# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction


class ActionModule(RecordingAction):
    kind = "gpu_info"
