# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' root file systems: one image for each Debian release, built once and kept by what goes into it.

An image is a bare node: what its provisioning needs, and nothing that a role of ours installs. The sources it was
built from are kept beside it and not in it: a node's package sources are the site's business.
"""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import builder
from lab.cache import building, unless_building
from lab.cgroup import enter
from lab.debian import MIRROR_VARIABLE, mirror_argument, sources
from lab.instance import LabError

# Debian 13 is what most hosts run; 12 shows older tools (simulation.md 0.1).
SUITE = "trixie"
SUITES = {"trixie": "13", "bookworm": "12"}
# libucx0 is a library below Open MPI and brings 180 MB of GPU libraries, perl is below lldpd and on every server: eight
# hosts would unpack them at each start.
# Programs come through roles (tests/unit/lab/test_repository.py).
PACKAGES = (
    "dbus", "iproute2", "iputils-ping", "kmod", "libucx0", "openssh-server", "perl", "procps",
    "python3", "python3-apt", "sudo", "systemd", "systemd-sysv", "udev",
)
SUITE_PACKAGES = {"trixie": ("linux-sysctl-defaults",), "bookworm": ()}
# Units that make no sense without a console, a real kernel or a way out (simulation.md 2, pitfall 5).
MASKED = (
    "apt-daily-upgrade.timer", "apt-daily.timer", "console-getty.service", "dpkg-db-backup.timer", "e2scrub_all.timer",
    "fstrim.timer", "getty.target", "modprobe@.service", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount",
    "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
)
USER = "ops"
HOOKS = (
    f'chroot "$1" useradd --create-home --shell /bin/bash {USER}',
    'chroot "$1" systemctl enable systemd-networkd.service',
    f'chroot "$1" systemctl mask {" ".join(MASKED)}',
    'rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id "$1"/etc/resolv.conf "$1"/etc/hostname',
)
OPTIONS = (
    "--variant=apt", "--format=tar", "--dpkgopt=force-unsafe-io", '--aptopt=Acquire::Languages "none"',
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")),
    *(f"--customize-hook={hook}" for hook in HOOKS),
)
# Counts up when the same options give another image.
FORMAT = "3"
NEEDED_BYTES = 2_000_000_000
SHM = Path("/dev/shm")
SCRATCH = "aidc-lab-image"


def packages(suite: str) -> tuple[str, ...]:
    return (*PACKAGES, *SUITE_PACKAGES[suite])


def key(suite: str = SUITE) -> str:
    parts = (FORMAT, suite, os.uname().machine, *OPTIONS, *packages(suite))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def path(cache: Path, suite: str = SUITE) -> Path:
    return cache / f"image-{key(suite)}"


def apt_sources(image: Path) -> Path:
    """Folder with the sources.list files that ``image`` was built from, for layers that install more."""
    return image.with_name(f"{image.name}.apt")


def _scratch(cache: Path) -> Path:
    """A memory file system when it has room: dpkg's fsyncs are most of the time on a disk."""
    roomy = SHM.is_dir() and os.access(SHM, os.W_OK) and shutil.disk_usage(SHM).free > NEEDED_BYTES
    return (SHM if roomy else cache) / SCRATCH


def sweep(cache: Path) -> None:
    """Remove what a killed build left, unless a build is running."""
    unless_building(cache, "image", _sweep)


def _sweep(cache: Path) -> None:
    for left in (*cache.glob("image-*.part"), SHM / SCRATCH, cache / SCRATCH):
        shutil.rmtree(left, ignore_errors=True)


def _bootstrap(suite: str, scratch: Path, log: Path, cgroup: Path) -> None:
    argv = ["mmdebstrap", *OPTIONS, f"--include={','.join(packages(suite))}", suite, str(scratch / "image.tar")]
    if mirror := mirror_argument(sources(suite), scratch):
        argv.append(mirror)
    # In the lab's cgroup, so that `down` ends it when the lab was killed.
    builder.logged("mmdebstrap", ["env", f"TMPDIR={scratch}", *argv], log,
                   f"a mirror of your own is given in {MIRROR_VARIABLE}", lambda: enter(cgroup))


def _take_sources(part: Path, kept: Path) -> None:
    """Move the package sources out of the image, to where layers find them."""
    shutil.rmtree(kept, ignore_errors=True)
    (kept / "sources.list.d").mkdir(parents=True)
    apt = part / "etc/apt"
    for file in (apt / "sources.list", *(apt / "sources.list.d").glob("*")):
        if file.exists():
            shutil.move(file, kept / file.relative_to(apt))


def ensure(cache: Path, cgroup: Path, say: Callable[[str], None], suite: str = SUITE) -> Path:
    """The image's folder, built first (in ``cgroup``) when it is not there. Safe against a kill at any moment."""
    image = path(cache, suite)
    with building(cache, "image"):
        if image.exists():
            return image
        free = shutil.disk_usage(cache).free
        if free < NEEDED_BYTES:
            raise LabError(f"{cache}: {free // 1_000_000} MB free, the image needs {NEEDED_BYTES // 1_000_000} MB")
        start = time.monotonic()
        say(f"building the hosts' image (Debian {SUITES[suite]}, {len(packages(suite))} packages and what they need; "
            "half a minute)")
        _sweep(cache)
        part, scratch = cache / f"{image.name}.part", _scratch(cache)
        for directory in (part, scratch):
            directory.mkdir()
        _bootstrap(suite, scratch, cache / "image.log", cgroup)
        # Extended attributes carry file capabilities (ping's, for one).
        subprocess.run(["tar", "--xattrs", "--xattrs-include=*", "--exclude=./dev/*", "-C", str(part),
                        "-xf", f"{scratch}/image.tar"], check=True, preexec_fn=lambda: enter(cgroup))
        _take_sources(part, apt_sources(image))
        part.rename(image)
        _sweep(cache)
        say(f"image ready: {size_bytes(image) // 1_000_000} MB, {time.monotonic() - start:.0f} s")
    return image


def size_bytes(directory: Path) -> int:
    return sum(os.lstat(os.path.join(base, name)).st_blocks * 512
               for base, _dirs, names in os.walk(directory) for name in names)
