# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian from this machine's own mirror: sources for any suite, and plain roots kept in ``cache/``.

The lab's hosts have their own image (``image.py``). The roots here are for tests: an old Python, a clean
machine. Standard library only.
"""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import builder
from lab.cache import building
from lab.instance import LabError

MIRROR_VARIABLE = "AIDC_LAB_MIRROR"
NEEDED_BYTES = 1_000_000_000
# Runs as PID 1 of its own PID namespace: when it ends, killed or not, its processes and the memory
# file system with the half-built root are gone. $1 = folder with root/ and scratch/, $2 = mirror or nothing.
# Extended attributes carry file capabilities.
SCRIPT = r"""
set -eu
part=$1 mirror=$2
shift 2
mount -t tmpfs -o mode=755 scratch "$part/scratch"
TMPDIR=$part/scratch mmdebstrap "$@" "$part/scratch/root.tar" ${mirror:+"$mirror"}
tar --xattrs '--xattrs-include=*' '--exclude=./dev/*' -C "$part/root" -xf "$part/scratch/root.tar"
"""


def _only(text: str, suite: str) -> str:
    """What of ``text`` (a sources file of either format) gives ``suite`` itself, component main.

    Old suites keep their security updates elsewhere, or nowhere.
    """
    if is_deb822(text):
        chosen = []
        for paragraph in re.split(r"\n[ \t]*\n", text):
            suites = re.search(r"^Suites:(.*)$", paragraph, re.MULTILINE)
            if suites and suite in suites[1].split():
                paragraph = re.sub(r"^Suites:.*$", f"Suites: {suite}", paragraph, flags=re.MULTILINE)
                chosen.append(re.sub(r"^Components:.*$", "Components: main", paragraph, flags=re.MULTILINE).strip())
        return "\n\n".join(chosen) + "\n"
    lines = re.findall(rf"^deb\s+(?:\[.*?\]\s+)?\S+\s+{suite}\s.*$", text, re.MULTILINE)
    return "".join(re.sub(rf"(\s{suite}\s).*", r"\1main", line) + "\n" for line in lines)


def is_deb822(text: str) -> bool:
    return re.search(r"^Types:", text, re.MULTILINE) is not None


def sources(suite: str, apt: Path = Path("/etc/apt"), only: bool = False) -> str | None:
    """This machine's own Debian mirror with the suites renamed, or None: mmdebstrap's default.

    A machine whose mirror is set up by its owner gets images and roots from there, too. With ``only``:
    the suite itself without updates, component main.
    """
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    own = re.search(r"^VERSION_CODENAME=(\w+)", release, re.MULTILINE)
    if not own or "\nID=debian" not in "\n" + release:
        return None
    for name in ("sources.list.d/debian.sources", "sources.list"):
        file = apt / name
        if file.exists() and own[1] in (text := file.read_text(encoding="utf-8")):
            text = re.sub(rf"\b{own[1]}\b", suite, text)
            return _only(text, suite) if only else text
    return None


def mirror_argument(text: str | None, directory: Path) -> str:
    """mmdebstrap's last argument: the user's mirror, or ``text`` as a file in ``directory``, or nothing."""
    mirror = os.environ.get(MIRROR_VARIABLE)
    if mirror or text is None:
        return mirror or ""
    file = directory / f"mirror.{'sources' if is_deb822(text) else 'list'}"
    file.write_text(text, encoding="utf-8")
    return str(file)


@dataclass(frozen=True)
class Root:
    """A small Debian root: ``packages`` of ``suite`` and what they need."""

    name: str
    suite: str
    packages: tuple[str, ...]

    def options(self) -> tuple[str, ...]:
        return ("--variant=apt", "--format=tar", "--dpkgopt=force-unsafe-io", '--aptopt=Acquire::Languages "none"',
                f"--include={','.join(self.packages)}")

    def path(self, cache: Path) -> Path:
        parts = (SCRIPT, self.suite, os.uname().machine, *self.options())
        return cache / f"{self.name}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


def _build(root: Root, part: Path, log: Path) -> None:
    mirror = mirror_argument(sources(root.suite, only=True), part)
    builder.logged(f"building the {root.suite} root",
                   [*builder.OWN_NAMESPACES, "--mount-proc", "sh", "-c", SCRIPT, "debian-root", str(part), mirror,
                    *root.options(), root.suite], log, f"a mirror of your own is given in {MIRROR_VARIABLE}")


def ensure(cache: Path, root: Root, say: Callable[[str], None]) -> Path:
    """The root's folder, built first when it is not there. Safe against a kill at any moment."""
    done = root.path(cache)
    with building(cache, root.name):
        for left in cache.glob(f"{root.name}-*.part"):
            shutil.rmtree(left)
        if done.exists():
            return done
        free = shutil.disk_usage(cache).free
        if free < NEEDED_BYTES:
            raise LabError(f"{cache}: {free // 1_000_000} MB free, the root needs {NEEDED_BYTES // 1_000_000} MB")
        start = time.monotonic()
        say(f"building a Debian {root.suite} root ({', '.join(root.packages)}; half a minute)")
        part = cache / f"{done.name}.part"
        for directory in (part, part / "root", part / "scratch"):
            directory.mkdir()
        _build(root, part, cache / f"{root.name}.log")
        (part / "root").rename(done)
        shutil.rmtree(part)
        say(f"root ready: {done}, {time.monotonic() - start:.0f} s")
    return done
