# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the lab keeps what it makes: one state directory, nothing elsewhere.

``cache/`` survives ``lab down`` (images and virtual environments, named by what went in);
``instances/NAME/`` is one running lab and is gone after ``lab down``. Standard library only:
the bootstrap uses this file before anything is installed.
"""
from __future__ import annotations

import os
from pathlib import Path

DEFAULT = "/var/lib/aidc-lab"
VARIABLE = "AIDC_LAB_STATE"
# A control socket's path ends in instances/NAME/cp/HASH.RANDOM: about 45 characters, of 107.
LONGEST = 50


class StateError(Exception):
    """The state directory cannot be used; the message says why and what to do."""


def filesystem_of(path: Path) -> str:
    """Type of the file system that holds ``path`` (the nearest existing parent counts)."""
    real = path.resolve()
    while not real.exists():
        real = real.parent
    best, kind = "", ""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _source, where, fstype = line.split()[:3]
        where = where.replace("\\040", " ")
        if (str(real) == where or str(real).startswith(where.rstrip("/") + "/")) and len(where) >= len(best):
            best, kind = where, fstype
    return kind


def state_dir(create: bool = False) -> Path:
    """The state directory: ``$AIDC_LAB_STATE`` or ``/var/lib/aidc-lab``."""
    path = Path(os.environ.get(VARIABLE) or DEFAULT)
    if not path.is_absolute() or len(str(path)) > LONGEST:
        raise StateError(
            f"state directory {path}: an absolute path of at most {LONGEST} characters is needed "
            f"(ssh's control sockets live below it); set {VARIABLE}"
        )
    kind = filesystem_of(path)
    if kind == "overlay":
        raise StateError(
            f"state directory {path} is on an overlay file system, and the hosts' roots are overlays, "
            f"which cannot be stacked on one; set {VARIABLE} to a folder on ext4, xfs, btrfs or tmpfs"
        )
    if create:
        path.mkdir(parents=True, exist_ok=True)
    return path
