# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' package repository: real packages with exactly what the image lacks, stand-ins under real names.

A host has no way out of the lab, so whatever a role installs comes from here, over HTTP and signed, as from the
mirror of a site without internet access (server.py). Built once in a layer of the image and kept by content.
"""
from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from lab import layer
from lab.cache import building, unless_building
from lab.image import size_bytes

HERE = Path(__file__).resolve().parent
FILES = HERE / "packages"
KEY = "archive-key"
# Suite of an image -> names under which its repository is offered: a persona's release name is another one.
OFFERED = {"trixie": ("trixie", "noble"), "bookworm": ("bookworm",)}
BODY = r"""
apt_get update
# Before anything else is installed: exactly what the image lacks.
apt_get --download-only install @PACKAGES@
mkdir "$root/build"
mv "$root/var/cache/apt/archives" "$root/build/pool"
rm -rf "$root/build/pool/partial" "$root/build/pool/lock"
mkdir -p "$root/var/cache/apt/archives/partial"
apt_get install apt-utils gpg gpg-agent
cp -r "$work/input/." "$root/build"
inside python3 /build/make.py /build
cp -r "$root/build/repository" "$work/repository"
cp -r "$root/build/key" "$work/key"
"""


class ContentError(Exception):
    """packages.yml does not fit the files beside it."""


@dataclass(frozen=True)
class Content:
    """What packages.yml says."""

    distribution: tuple[str, ...]
    exchanged: dict[str, list[str]]
    own: dict[str, dict[str, str] | None]
    kept: dict[str, list[str]] = field(default_factory=dict)

    def names(self) -> set[str]:
        return {*self.distribution, *self.own}


def content() -> Content:
    """Read packages.yml and check it against the files. Raises ContentError."""
    data = yaml.safe_load((HERE / "packages.yml").read_text(encoding="utf-8"))
    found = Content(tuple(data["distribution"]), data["exchanged"], data["own"], data.get("kept", {}))
    for name, paths in found.exchanged.items():
        missing = [path for path in paths if not (FILES / name / path).is_file()]
        if missing or name not in found.distribution:
            raise ContentError(f"exchanged.{name}: no file {', '.join(missing)} in {FILES / name}, "
                               "or the package is not listed in distribution")
    for name, paths in found.kept.items():
        if set(paths) - set(found.exchanged.get(name, [])):
            raise ContentError(f"kept.{name}: got {', '.join(paths)}, wanted files that are exchanged")
    for name in found.own:
        if not (FILES / name / "control").is_file():
            raise ContentError(f"own.{name}: no file {FILES / name}/control")
    return found


def body(packages: Content) -> str:
    return BODY.replace("@PACKAGES@", " ".join(packages.distribution))


def key(image: Path, programs: Path, suite: str) -> str:
    """Everything that goes in, but for the versions that the distribution has at that time."""
    digest = hashlib.sha256("\0".join((image.name, programs.name, *OFFERED[suite], layer.script(BODY))).encode())
    for file in (HERE / "make.py", HERE / "packages.yml"):
        digest.update(b"\0" + file.read_bytes())
    for file in sorted(path for path in FILES.rglob("*") if path.is_file()):
        digest.update(f"\0{file.relative_to(FILES)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def path(cache: Path, image: Path, programs: Path, suite: str) -> Path:
    return cache / f"repository-{suite}-{key(image, programs, suite)}"


def sweep(cache: Path) -> None:
    """Remove what a killed build left, unless a build is running."""
    unless_building(cache, "repository", _sweep)


def _sweep(cache: Path) -> None:
    for left in (*cache.glob("repository-*.part"), cache / f"{KEY}.part"):
        shutil.rmtree(left, ignore_errors=True)


def _input(part: Path, packages: Content, programs: Path, suite: str, signing_key: Path) -> None:
    top = part / "input"
    shutil.copytree(FILES, top / "files")
    for name, where in packages.own.items():
        if where is not None:
            shutil.copytree(programs / where["from"], top / "files" / name / where["to"], symlinks=True)
    plan = {"suites": OFFERED[suite], "exchanged": packages.exchanged, "kept": packages.kept, "own": list(packages.own)}
    (top / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    shutil.copy(HERE / "make.py", top)
    if signing_key.exists():
        shutil.copytree(signing_key, top / "key")
    else:
        (top / "key").mkdir(mode=0o700)


def ensure(cache: Path, image: Path, programs: Path, suite: str, cgroup: Path, say: Callable[[str], None]) -> Path:
    """The repository's folder (``dists``, ``pool``), built first (in ``cgroup``) when it is not there.

    ``programs`` is what ``lab.standin.build.ensure`` gives for this image. Safe against a kill at any moment.
    """
    done, signing_key = path(cache, image, programs, suite), cache / KEY
    with building(cache, "repository"):
        if done.exists() and signing_key.exists():
            return done
        packages, start = content(), time.monotonic()
        say(f"building the hosts' package repository ({suite}: {', '.join(sorted(packages.names()))}; ten seconds)")
        _sweep(cache)
        part = cache / f"{done.name}.part"
        part.mkdir()
        _input(part, packages, programs, suite, signing_key)
        layer.run("building the package repository", (image,), part, body(packages), cache / "repository.log", cgroup)
        if not signing_key.exists():
            (part / "key").chmod(0o700)
            (part / "key").rename(signing_key)
        shutil.rmtree(done, ignore_errors=True)
        (part / "repository").rename(done)
        shutil.rmtree(part)
        say(f"repository ready: {size_bytes(done) // 1_000_000} MB, {time.monotonic() - start:.0f} s")
    return done


def public_key(cache: Path) -> Path:
    """The key that the repositories are signed with, in ASCII armour."""
    return cache / KEY / "public.asc"
