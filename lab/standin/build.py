# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles the nccl-tests stand-in inside the hosts' image, kept by what goes into it.

The compiler is installed in a throw-away layer over the image (layer.py), so glibc and MPI are those of the
hosts (simulation.md 0b.10). Standard library only.
"""
from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lab import layer
from lab.cache import building, unless_building

HERE = Path(__file__).resolve().parent
PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "sendrecv_perf")
COMPILER = ("gcc", "libc6-dev", "libopenmpi-dev")
# Of MPICH its header and library are enough, and its packages alone: they would bring compilers for Fortran and C++.
MPICH = ("libmpich-dev", "libmpich12")
# Open MPI's mpirun starts those in bin/, srun --mpi=pmi2 those in bin-mpich/ (simulation.md 0.4).
FOLDERS = ("bin", "bin-mpich")
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
BODY = r"""
mkdir "$root/source"
cp "$work"/source/* "$root/source"
apt_get update
apt_get install @COMPILER@
inside sh -euc 'cd /source && mpicc @FLAGS@ -o nccl_standin *.c'
cp "$root/source/nccl_standin" "$work/bin/@FIRST@"
inside sh -euc '
    mkdir /mpich && cd /mpich
    apt-get -q -o APT::Sandbox::User=root download @MPICH@
    for package in *.deb; do dpkg-deb -x "$package" .; done
    here=$(gcc -print-multiarch)
    cd /source
    gcc @FLAGS@ -I"/mpich/usr/include/$here/mpich" -o nccl_standin_mpich *.c \
        -L"/mpich/usr/lib/$here" -lmpich -Wl,--unresolved-symbols=ignore-in-shared-libs'
cp "$root/source/nccl_standin_mpich" "$work/bin-mpich/@FIRST@"
"""


def sources() -> list[Path]:
    return sorted((*HERE.glob("*.c"), *HERE.glob("*.h")))


def body() -> str:
    return (BODY.replace("@COMPILER@", " ".join(COMPILER)).replace("@FLAGS@", " ".join(FLAGS))
            .replace("@MPICH@", " ".join(MPICH)).replace("@FIRST@", PROGRAMS[0]))


def key(image: Path, files: Iterable[Path]) -> str:
    """Names and contents of the sources, how they are built, and the image's own key (its folder's name)."""
    parts = [image.name, layer.script(body()), *PROGRAMS]
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


def ensure(cache: Path, image: Path, cgroup: Path, say: Callable[[str], None]) -> Path:
    """The folder with ``bin/all_reduce_perf`` and its other names, and the same in ``bin-mpich/``.

    Built first (in ``cgroup``) when it is not there. ``image`` is the folder that ``lab.image.ensure`` gives. Safe
    against a kill at any moment.
    """
    done = path(cache, image)
    with building(cache, "standin"):
        if done.exists():
            return done
        start = time.monotonic()
        say(f"compiling the nccl-tests stand-in in a layer of the image ({', '.join(COMPILER)}; ten seconds)")
        _sweep(cache)
        part = cache / f"{done.name}.part"
        for directory in (part, part / "source", *(part / folder for folder in FOLDERS)):
            directory.mkdir()
        for file in sources():
            shutil.copy(file, part / "source")
        layer.run("compiling the nccl-tests stand-in", (image,), part, body(), cache / "standin.log", cgroup)
        for folder in FOLDERS:
            for name in PROGRAMS[1:]:
                os.symlink(PROGRAMS[0], part / folder / name)
        shutil.rmtree(part / "source")
        part.rename(done)
        say(f"stand-in ready: {done}, {time.monotonic() - start:.0f} s")
    return done
