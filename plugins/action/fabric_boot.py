# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import functools
import hashlib
import tempfile
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import boot_archive
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction

CODE = Path(__file__).resolve().parents[1] / "module_utils"
_DEEDS = {"before", "after", "commands", "steps", "diff"}


@functools.cache
def packed() -> tuple[bytes, str]:
    """The tool and its digest; the same for all hosts of a run."""
    data = boot_archive.build(CODE)
    return data, hashlib.sha256(data).hexdigest()


class ActionModule(RecordingAction):
    """Packs the tool. Its bytes go to a host only if the module there asks for them."""

    kind = "fabric_boot"

    def _call(self, arguments: t.Mapping[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        try:
            data, digest = packed()
        except (boot_archive.ArchiveError, OSError, SyntaxError) as error:
            raise AnsibleActionFail(f"the boot tool cannot be packed: {error}") from error
        given = {**arguments, "digest": digest}
        result = super()._call(given, variables)
        if result.get("needs_source") and not result.get("failed"):
            result = super()._call({**given, "source": self._send(data)}, variables)
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _send(self, data: bytes) -> str:
        """The path of the tool's bytes on the host, in the task's own temporary folder."""
        folder = self._connection._shell.tmpdir or self._make_tmp_path()
        remote = str(self._connection._shell.join_path(folder, "aidc-fabric.pyz"))
        with tempfile.NamedTemporaryFile() as local:
            local.write(data)
            local.flush()
            self._transfer_file(local.name, remote)
        self._fixup_perms2((folder, remote))
        return remote

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        """In check mode, too: ``enabled`` and ``drift`` are what is."""
        return {key: value for key, value in data.items() if key not in _DEEDS}
