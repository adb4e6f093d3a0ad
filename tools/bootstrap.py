#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install what the checkout needs on this machine: Debian packages and a virtual environment.

Standard library only: it runs before anything is installed. Packages are listed before they
are installed; the virtual environment lives in the lab's state directory, named by what is in
it, and ``.venv`` in the checkout is a link to it. Nothing else on the machine is touched.
"""
from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab.state import StateError, state_dir  # noqa: E402  (needs the path above)

# Debian package -> what of it is used, so that the list explains itself.
PACKAGES = {
    "debian-archive-keyring": "keys that the image's packages are checked with",
    "ethtool": "segmentation offload off in the hosts",
    "fuse3": "emulated sysfs (libfuse)",
    "iproute2": "namespaces, links, traffic shaping",
    "mmdebstrap": "builds the hosts' Debian 13 image",
    "openssh-client": "Ansible's connection to the hosts",
    "python3-venv": "virtual environment for Ansible and the test tools",
}
SYSTEMS = {("debian", "12"), ("debian", "13"), ("ubuntu", "24.04")}


def die(message: str, hint: str = "") -> None:
    sys.stderr.write(f"setup: {message}\n" + (f"       {hint}\n" if hint else ""))
    raise SystemExit(2)


def check_machine() -> None:
    if sys.version_info < (3, 11):
        die(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}", "run make PYTHON=/path/to/python3.11")
    if os.geteuid() != 0:
        die("root is needed: the lab makes network namespaces, mounts and cgroups", "run it with sudo")
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line
    )
    system = tuple(release.get(key, "").strip('"') for key in ("ID", "VERSION_ID"))
    if system not in SYSTEMS:
        print(f"setup: {' '.join(system)} is not among the systems this is tested on (Debian 12, 13, Ubuntu 24.04)")


def missing_packages() -> list[str]:
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES],
        capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False,
    )
    installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    # A Python that is not Debian's brings its own venv module.
    if Path(sys.base_prefix) != Path("/usr"):
        installed.add("python3-venv")
    return [name for name in PACKAGES if name not in installed]


def agreed() -> bool:
    if os.environ.get("CI") or os.environ.get("ASSUME_YES"):
        return True
    if not sys.stdin.isatty():
        die("not installing packages without a yes: there is no terminal to ask on", "set ASSUME_YES=1")
    return input("setup: install them now? [y/N] ").strip().lower() in ("y", "yes")


def install_packages() -> bool:
    """Whether there was something to install."""
    missing = missing_packages()
    if not missing:
        return False
    print("setup: Debian packages to install on this machine:", flush=True)
    for name in missing:
        print(f"         {name:24}{PACKAGES[name]}", flush=True)
    if not agreed():
        die("nothing installed")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
    if subprocess.run(install, env=environment, check=False).returncode != 0:
        # The usual cause on a fresh machine: no package list yet, or an old one.
        if subprocess.run(["apt-get", "update", "-q"], env=environment, check=False).returncode != 0:
            die("apt-get update failed", "its messages stand above")
        if subprocess.run(install, env=environment, check=False).returncode != 0:
            die("apt-get install failed", "its messages stand above")
    if left := missing_packages():
        die(f"apt-get install succeeded, but these are still missing: {', '.join(left)}")
    return True


def venv_key() -> str:
    digest = hashlib.sha256(f"{sys.version} {sys.executable}".encode())
    for name in ("requirements.txt", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()[:16]


def make_venv(cache: Path) -> Path:
    venv = cache / f"venv-{venv_key()}"
    complete = venv / ".complete"
    with open(cache / "venv.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return venv
        print(f"setup: installing Ansible and the test tools into {venv} (about a minute)", flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        # Not `-m venv` at a temporary name: scripts in a virtual environment carry its path.
        for command in (
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin/pip"), "install", "-q", "--disable-pip-version-check",
             "-r", str(ROOT / "requirements.txt"), "-c", str(ROOT / "constraints.txt")],
        ):
            if subprocess.run(command, check=False).returncode != 0:
                die(f"failed: {' '.join(command)}")
        complete.touch()
    return venv


def link_venv(venv: Path) -> None:
    link = ROOT / ".venv"
    if link.is_symlink() or not link.exists():
        if link.is_symlink() and os.readlink(link) == str(venv):
            return
        temporary = ROOT / f".venv.{os.getpid()}"
        temporary.symlink_to(venv)
        temporary.replace(link)
    else:
        die(f"{link} is in the way: a folder, not the link that make sets", "move it away")


def main() -> None:
    start = time.monotonic()
    check_machine()
    try:
        state = state_dir(create=True)
    except StateError as error:
        die(str(error))
    if install_packages():
        # python3-venv may have brought a newer Python than the one that runs this, and the virtual
        # environment is named by its version.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    cache = state / "cache"
    cache.mkdir(exist_ok=True)
    link_venv(make_venv(cache))
    if time.monotonic() - start > 2:
        print(f"setup: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
