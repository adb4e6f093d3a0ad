# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.fleet_lock import LOCK_NAME, fleet_lock

HOLD = """
import sys
from pathlib import Path
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.fleet_lock import fleet_lock
with fleet_lock(Path(sys.argv[1]), "the other run", "some_dir"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_told_who_holds_the_lock_and_a_killed_one_holds_it_no_longer(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))}) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(AnsibleActionFail, match=rf"held by pid {other.pid} of .* \(the other run\) since"), \
                fleet_lock(folder, "this run", "some_dir", wait_seconds=0):
            pass
        other.kill()
    with fleet_lock(folder, "this run", "some_dir", wait_seconds=0):
        assert (folder / LOCK_NAME).stat().st_mode & 0o777 == 0o600


def test_an_error_inside_is_not_taken_for_one_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="mine"), fleet_lock(tmp_path, "x", "some_dir", wait_seconds=0):
        raise OSError("mine")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AnsibleActionFail, match="file/x.*check some_dir"), \
            fleet_lock(tmp_path / "file" / "x", "x", "some_dir"):
        pass
