# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside the layer (build.py), with the image's Python: python3 make.py FOLDER

FOLDER holds ``plan.json``, ``pool/`` with the downloaded packages, ``files/NAME/...`` of what is exchanged or
our own, and ``key/`` (private.asc, public.asc; made when missing). Afterwards ``repository/`` is a signed archive.
"""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SUFFIX = "+aidclab1"
OWNER = "aidc.gpu_cluster lab archive"
KEPT = "usr/libexec/aidc-lab"


def run(*argv: str, text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def one(pool: Path, name: str) -> Path:
    found = sorted(pool.glob(f"{name}_*.deb"))
    if len(found) != 1:
        sys.exit(f"package {name}: got {len(found)} files in the pool, wanted 1; is it in the image already?")
    return found[0]


def put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(0o755)


def mark(control: Path) -> None:
    """Version and description say that this is not the real package."""
    lines = []
    for line in control.read_text(encoding="utf-8").splitlines():
        if line.startswith("Version:"):
            line += SUFFIX
        elif line.startswith("Description:") and "SIMULATED" not in line:
            line += " (SIMULATED)"
        lines.append(line)
    control.write_text("\n".join(lines) + "\n", encoding="utf-8")


def checksums(tree: Path) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()
                   and path.relative_to(tree).parts[0] != "DEBIAN")
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)
    (tree / "DEBIAN/md5sums").write_text(sums, encoding="utf-8")


def exchange(pool: Path, name: str, paths: list[str], kept: list[str], files: Path, scratch: Path) -> None:
    package, tree = one(pool, name), scratch / name
    run("dpkg-deb", "-R", str(package), str(tree))
    for path in paths:
        # Debian 12 has some programs below /sbin, the same folder there as /usr/sbin.
        place = next((tree / here for here in (path, path.removeprefix("usr/")) if (tree / here).exists()), None)
        if place is None:
            sys.exit(f"package {name}: no file {path} to exchange in {package.name}")
        if path in kept:
            put(place, tree / KEPT / place.name)
        put(files / name / path, place)
    mark(tree / "DEBIAN/control")
    checksums(tree)
    package.unlink()
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", str(tree), str(pool))


def own(pool: Path, name: str, files: Path, scratch: Path, architecture: str) -> None:
    tree = scratch / name
    shutil.copytree(files / name, tree, symlinks=True)
    (tree / "DEBIAN").mkdir()
    shutil.move(tree / "control", tree / "DEBIAN/control")
    for script in ("postinst", "prerm"):
        if (tree / script).exists():
            shutil.move(tree / script, tree / "DEBIAN" / script)
    with open(tree / "DEBIAN/control", "a", encoding="utf-8") as control:
        control.write(f"Architecture: {architecture}\n")
    mark(tree / "DEBIAN/control")
    checksums(tree)
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", str(tree), str(pool))


def signing_key(key: Path) -> None:
    private, public = key / "private.asc", key / "public.asc"
    if private.exists():
        run("gpg", "--batch", "--import", str(private))
        return
    run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", OWNER, "ed25519", "sign", "never")
    os.umask(0o077)
    private.write_text(run("gpg", "--batch", "--armor", "--export-secret-keys", OWNER), encoding="ascii")
    os.umask(0o022)
    public.write_text(run("gpg", "--batch", "--armor", "--export", OWNER), encoding="ascii")


def index(top: Path, suite: str, packages: str, architecture: str) -> None:
    """``dists/SUITE`` with its packages and a signed release file."""
    dist = top / "dists" / suite
    binary = dist / "main" / f"binary-{architecture}"
    binary.mkdir(parents=True)
    (binary / "Packages").write_text(packages, encoding="utf-8")
    (binary / "Packages.gz").write_bytes(gzip.compress(packages.encode(), mtime=0))
    options = [f"-oAPT::FTPArchive::Release::{key}={value}" for key, value in (
        ("Origin", OWNER), ("Label", OWNER), ("Suite", suite), ("Codename", suite), ("Components", "main"),
        ("Architectures", architecture))]
    (top / "release").write_text(run("apt-ftparchive", *options, "release", str(dist)), encoding="utf-8")
    shutil.move(top / "release", dist / "Release")
    run("gpg", "--batch", "--clearsign", "-o", str(dist / "InRelease"), str(dist / "Release"))


def main() -> None:
    top = Path(sys.argv[1])
    plan = json.loads((top / "plan.json").read_text(encoding="utf-8"))
    architecture = run("dpkg", "--print-architecture").strip()
    pool = top / "repository/pool" / plan["suites"][0]
    pool.parent.mkdir(parents=True)
    shutil.move(top / "pool", pool)
    scratch = top / "scratch"
    scratch.mkdir()
    for name, paths in plan["exchanged"].items():
        exchange(pool, name, paths, plan["kept"].get(name, []), top / "files", scratch)
    for name in plan["own"]:
        own(pool, name, top / "files", scratch, architecture)
    os.chdir(top / "repository")
    packages = run("apt-ftparchive", "packages", f"pool/{plan['suites'][0]}")
    signing_key(top / "key")
    for suite in plan["suites"]:
        index(top / "repository", suite, packages, architecture)


if __name__ == "__main__":
    main()
