#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tier sanity: ansible-test sanity for the plugins that changed, or with --all for all of them.

Changed: since origin/main, or since the commit before the last where there is none, committed or not.

ansible-test wants a real path that ends in ansible_collections/NAMESPACE/NAME, so it gets a copy. Its HOME is a
folder in cache/, with the virtual environments that it makes for its tools: the first run needs an index of
packages, later ones need no network, and nothing of the user's is touched.
"""
from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab.cache import building  # noqa: E402  (needs the path above)
from lab.state import state_dir  # noqa: E402

# Left out: pslint (PowerShell) and shellcheck have nothing to look at in plugins/, and their programs are not
# among the packages that the checkout installs.
LEFT_OUT = ("pslint", "shellcheck")
# Where ansible-test looks for a script that brings pip into its virtual environments; it would be downloaded
# from an address that is not a package index (simulation.md 0b.13).
BOOTSTRAP = ".ansible/test/cache/get_pip_24_2.py"


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"sanity: git {' '.join(arguments)}: {done.stderr.strip()}")
    return [name for name in done.stdout.split("\0") if name]


def base() -> str | None:
    """The commit to compare with; None when there is none before this one."""
    for name in ("origin/main", "HEAD~1"):
        done = subprocess.run(["git", "merge-base", name, "HEAD"], cwd=ROOT, capture_output=True, text=True,
                              check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def changed() -> list[str]:
    """Files below plugins/ that are not as in the base, committed or not."""
    before = base()
    if before is None:
        return git("ls-files", "-z", "plugins")
    names = git("diff", "-z", "--name-only", "--diff-filter=d", before, "--", "plugins")
    return sorted({*names, *git("ls-files", "-z", "--others", "--exclude-standard", "plugins")})


def copy(target: Path) -> None:
    """What git tracks, and what it would; not the link that makes the checkout a collection."""
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard"):
        source = ROOT / name
        if source.exists() and not name.startswith(".collections/"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)


def home(cache: Path) -> Path:
    key = hashlib.sha256(f"{version('ansible-core')} {sys.version} {sys.executable}".encode()).hexdigest()[:16]
    directory = cache / f"sanity-{key}"
    script = directory / BOOTSTRAP
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("import ensurepip; ensurepip.bootstrap()\n", encoding="utf-8")
    return directory


def main() -> int:
    parser = argparse.ArgumentParser(description="ansible-test sanity for the plugins that changed")
    parser.add_argument("--all", action="store_true", help="all plugins")
    names = ["plugins/"] if parser.parse_args().all else changed()
    if not names:
        print(f"sanity: no file below plugins/ is changed against {base()}")
        return 0
    print(f"sanity: {' '.join(names)}; left out: {', '.join(LEFT_OUT)}", flush=True)
    cache = state_dir(create=True) / "cache"
    with tempfile.TemporaryDirectory(prefix="aidc-sanity-") as work, building(cache, "sanity"):
        target = Path(work) / "ansible_collections" / "aidc" / "gpu_cluster"
        copy(target)
        argv = [str(ROOT / ".venv/bin/ansible-test"), "sanity", "--color", "no",
                "--python", f"{sys.version_info[0]}.{sys.version_info[1]}",
                *(word for name in LEFT_OUT for word in ("--skip-test", name)), *names]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        return subprocess.run(argv, cwd=target, check=False, env={**environment, "HOME": str(home(cache))}).returncode


if __name__ == "__main__":
    sys.exit(main())
