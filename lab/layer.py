# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work done inside a hosts' image without touching it: a throw-away overlay in memory.

The user's machine needs no compiler and no archive tools, and what is built fits the hosts' libraries
(simulation.md 0b.10). The overlay lives in mount and PID namespaces of its own: when the last process
in it ends, killed or not, mounts and layer are gone. Standard library only.
"""
from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import builder
from lab.cache import building, unless_building
from lab.cgroup import enter
from lab.image import apt_sources, size_bytes

# Left out of what is installed: nobody reads it in a host.
NO_DOCUMENTS = tuple(f"path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man"))
# Runs as PID 1 of its own PID namespace; $1 = lower folders, $2 = work folder, $3 = apt sources.
# A body finds $root (the overlay), $work, apt_get and inside.
PREPARE = r"""
set -eu
lower=$1 work=$2 sources=$3
mkdir -p "$work/layer"
mount -t tmpfs -o mode=755 layer "$work/layer"
mkdir "$work/layer/upper" "$work/layer/work" "$work/layer/root"
root=$work/layer/root
mount -t overlay -o "lowerdir=$lower,upperdir=$work/layer/upper,workdir=$work/layer/work" layer "$root"
mount -t proc proc "$root/proc"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
# Names resolve as on this machine; packages come from where the image came from.
if [ -e /etc/resolv.conf ]; then cat /etc/resolv.conf >"$root/etc/resolv.conf"; fi
cp -r "$sources"/. "$root/etc/apt"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
inside() { chroot "$root" "$@"; }
# No service is started by a maintainer script.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
apt_get() { inside apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io @EXCLUDE@ "$@"; }
"""


def script(body: str) -> str:
    return PREPARE.replace("@EXCLUDE@", " ".join(f"-o Dpkg::Options::=--{rule}" for rule in NO_DOCUMENTS)) + body


def run(what: str, lower: Sequence[Path], work: Path, body: str, log: Path, cgroup: Path) -> None:
    """Run shell ``body`` beside the overlay of ``lower`` (top first, an image last); raises LabError with its words."""
    builder.logged(what, [*builder.OWN_NAMESPACES, "sh", "-c", script(body), "lab-layer", ":".join(map(str, lower)),
                           str(work), str(apt_sources(lower[-1]))], log, before_exec=lambda: enter(cgroup))
    shutil.rmtree(work / "layer")


# The end of a body that keeps what it installed, without what only the building needed: $work/kept.
KEEP = r"""
inside apt-get clean
rm -rf "$root"/var/lib/apt/lists/* "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* \
    "$root"/etc/resolv.conf "$root"/usr/sbin/policy-rc.d "$root"/var/log/apt "$root"/var/log/dpkg.log
umount "$root"/dev/* "$root/proc"
umount "$root"
rm -rf "$work/layer/upper/dev" "$work/layer/upper/etc/resolv.conf"
# Whiteouts and extended attributes of the overlay are kept.
cp -a "$work/layer/upper" "$work/kept"
"""


def key(lower: Sequence[Path], body: str) -> str:
    """Of what a kept layer is made of: the folders below it (their names carry keys) and how it is built."""
    return hashlib.sha256("\0".join([*(path.name for path in lower), script(body)]).encode()).hexdigest()[:16]


def sweep(cache: Path) -> None:
    """Remove what a killed build left, unless a build is running."""
    unless_building(cache, "layer", _sweep)


def _sweep(cache: Path) -> None:
    for left in cache.glob("layer-*.part"):
        shutil.rmtree(left, ignore_errors=True)


def ensure(cache: Path, name: str, lower: Sequence[Path], body: str, cgroup: Path, say: Callable[[str], None]) -> Path:
    """The folder with what ``body`` changed over ``lower``, built first (in ``cgroup``) when it is not there."""
    done = cache / f"layer-{name}-{key(lower, body)}"
    with building(cache, "layer"):
        if done.exists():
            return done
        start = time.monotonic()
        say(f"building the layer {name} over {lower[-1].name}")
        _sweep(cache)
        part = cache / f"{done.name}.part"
        part.mkdir()
        run(f"building the layer {name}", lower, part, body + KEEP, cache / "layer.log", cgroup)
        (part / "kept").rename(done)
        part.rmdir()
        say(f"layer ready: {size_bytes(done) // 1_000_000} MB, {time.monotonic() - start:.0f} s")
    return done


def install(*packages: str) -> str:
    """A body that installs packages of the image's own distribution."""
    return f"apt_get update\napt_get install {' '.join(packages)}\n"
