# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles the nccl-tests stand-in inside the hosts' image, kept by what goes into it.

The user's machine needs no compiler, and glibc and MPI are those of the hosts (simulation.md 0b.10). The
compiler is installed in a layer over the image that lives in memory and in a mount namespace of its own:
when the last process in it ends, killed or not, mounts and layer are gone. Standard library only.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lab.cache import building, unless_building
from lab.cgroup import enter
from lab.instance import LabError

HERE = Path(__file__).resolve().parent
PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "sendrecv_perf")
COMPILER = ("gcc", "libc6-dev", "libopenmpi-dev")
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
LIMIT_SECONDS = 600
# Runs as PID 1 of its own PID namespace; $1 = image, $2 = folder with source/, for bin/.
LAYER = r"""
set -eu
image=$1 work=$2
mount -t tmpfs -o mode=755 layer "$work/layer"
mkdir "$work/layer/upper" "$work/layer/work" "$work/layer/root"
root=$work/layer/root
mount -t overlay -o "lowerdir=$image,upperdir=$work/layer/upper,workdir=$work/layer/work" layer "$root"
mount -t proc proc "$root/proc"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
# Names resolve as on this machine.
if [ -e /etc/resolv.conf ]; then cat /etc/resolv.conf >"$root/etc/resolv.conf"; fi
mkdir "$root/source"
cp "$work"/source/* "$root/source"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
chroot "$root" apt-get -q update
chroot "$root" apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \
    -o Dpkg::Options::=--path-exclude=/usr/share/doc/* -o Dpkg::Options::=--path-exclude=/usr/share/man/* \
    install @COMPILER@
chroot "$root" sh -euc 'cd /source && mpicc @FLAGS@ -o nccl_standin *.c'
cp "$root/source/nccl_standin" "$work/bin/@FIRST@"
"""


def sources() -> list[Path]:
    return sorted((*HERE.glob("*.c"), *HERE.glob("*.h")))


def script() -> str:
    return (LAYER.replace("@COMPILER@", " ".join(COMPILER)).replace("@FLAGS@", " ".join(FLAGS))
            .replace("@FIRST@", PROGRAMS[0]))


def key(image: Path, files: Iterable[Path]) -> str:
    """Names and contents of the sources, how they are built, and the image's own key (its folder's name)."""
    parts = [image.name, script(), *PROGRAMS]
    for file in files:
        parts += (file.name, file.read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def path(cache: Path, image: Path) -> Path:
    return cache / f"standin-{key(image, sources())}"


def sweep(cache: Path) -> None:
    """Remove what a killed build left, unless a build is running."""
    unless_building(cache, "standin", _sweep)


def _sweep(cache: Path) -> None:
    for left in cache.glob("standin-*.part"):
        shutil.rmtree(left, ignore_errors=True)


def _before_exec(cgroup: Path) -> None:
    enter(cgroup)
    # Ends with this process, whatever ends it; unshare passes the end on to the whole PID namespace.
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _compile(image: Path, work: Path, log: Path, cgroup: Path) -> None:
    argv = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL",
            "sh", "-c", script(), "standin-build", str(image), str(work)]
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   preexec_fn=lambda: _before_exec(cgroup))
        try:
            code = process.wait(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            process.kill()
            process.wait()
    if code != 0:
        tail = "".join(log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)[-12:])
        raise LabError(f"compiling the nccl-tests stand-in failed (exit status {code}); the end of {log}:\n{tail}")


def ensure(cache: Path, image: Path, cgroup: Path, say: Callable[[str], None]) -> Path:
    """The folder with ``bin/all_reduce_perf`` and its other names, built first (in ``cgroup``) when it is not there.

    ``image`` is the folder that ``lab.image.ensure`` gives. Safe against a kill at any moment.
    """
    done = path(cache, image)
    with building(cache, "standin"):
        if done.exists():
            return done
        start = time.monotonic()
        say(f"compiling the nccl-tests stand-in in a layer of the image ({', '.join(COMPILER)}; ten seconds)")
        _sweep(cache)
        part = cache / f"{done.name}.part"
        for directory in (part, part / "source", part / "layer", part / "bin"):
            directory.mkdir()
        for file in sources():
            shutil.copy(file, part / "source")
        _compile(image, part, cache / "standin.log", cgroup)
        for name in PROGRAMS[1:]:
            os.symlink(PROGRAMS[0], part / "bin" / name)
        shutil.rmtree(part / "source")
        (part / "layer").rmdir()
        part.rename(done)
        say(f"stand-in ready: {done}, {time.monotonic() - start:.0f} s")
    return done
