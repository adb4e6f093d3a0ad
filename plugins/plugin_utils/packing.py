# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""An action plugin that brings a packed program along; its bytes go to a host only if the module there asks."""
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
def packed(start: boot_archive.Name, package: str) -> tuple[bytes, str]:
    """The program and its digest; the same for all hosts of a run."""
    data = boot_archive.build(CODE, start, package)
    return data, hashlib.sha256(data).hexdigest()


class PackingAction(RecordingAction):
    """``start`` and ``package`` as boot_archive.build takes them, ``file_name`` on the host."""

    start: t.ClassVar[boot_archive.Name]
    package: t.ClassVar[str]
    file_name: t.ClassVar[str]

    def _call(self, arguments: t.Mapping[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        try:
            data, digest = packed(self.start, self.package)
        except (boot_archive.ArchiveError, OSError, SyntaxError) as error:
            raise AnsibleActionFail(f"{self.file_name} cannot be packed: {error}") from error
        given = {**arguments, "digest": digest}
        result = super()._call(given, variables)
        if result.get("needs_source") and not result.get("failed"):
            result = super()._call({**given, "source": self._send(data)}, variables)
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _send(self, data: bytes) -> str:
        """The path of the program's bytes on the host, in the task's own temporary folder."""
        folder = self._connection._shell.tmpdir or self._make_tmp_path()
        remote = str(self._connection._shell.join_path(folder, self.file_name))
        with tempfile.NamedTemporaryFile() as local:
            local.write(data)
            local.flush()
            self._transfer_file(local.name, remote)
        self._fixup_perms2((folder, remote))
        return remote

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        """In check mode, too: what the program said is what is."""
        return {key: value for key, value in data.items() if key not in _DEEDS}
