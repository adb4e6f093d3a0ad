# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The controller's lock around files that are about several hosts: two runs from one place do not mix theirs."""
from __future__ import annotations

import contextlib
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.lock import file_lock
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine

LOCK_NAME = ".lock"
WAIT_SECONDS = 30.0


@contextlib.contextmanager
def fleet_lock(folder: Path, what: str, variable: str, wait_seconds: float = WAIT_SECONDS) -> t.Iterator[None]:
    """Hold the folder's lock; an error names the holder, and the variable that names the folder."""
    path = folder / LOCK_NAME
    # Entered by hand, so that an error of the block is not taken for one of the lock.
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(file_lock(Machine(), path, str(path), what, wait_seconds))
        except (AidcError, OSError) as error:
            raise AnsibleActionFail(f"{path}: {error}; check {variable}") from error
        yield
