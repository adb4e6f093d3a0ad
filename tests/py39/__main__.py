
"""Tier py39: builds what is not cached, then runs pytest in a Debian 11 root without a network.

    .venv/bin/python -m tests.py39 [pytest's arguments]
"""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ansible

from lab.cache import building
from lab.debian import Root, ensure
from lab.instance import LabError
from lab.state import StateError, state_dir
from tests.py39 import payloads, selection
from tools.chroot import Bind, Room, run

ROOT = selection.ROOT
HERE = Path(__file__).resolve().parent
# With what the modules call and every managed node has.
PYTHON39 = Root("root-py39", "bullseye", ("iproute2", "iputils-ping", "openssh-client", "python3"))
LIMIT_SECONDS = 360
NO_TESTS_COLLECTED = 5


def say(text: str) -> None:
    print(f"py39: {text}", flush=True)


def packages(cache: Path) -> Path:
    """The test tools for Python 3.9, unpacked, by pip with this machine's configuration."""
    requirements = HERE / "requirements.txt"
    done = cache / f"site-py39-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    with building(cache, "site-py39"):
        if not done.exists():
            for left in cache.glob("site-py39-*.part"):
                shutil.rmtree(left)
            part = cache / f"{done.name}.part"
            argv = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-compile", "--only-binary=:all:", "--python-version", "3.9", "--target", str(part),
                    "-r", str(requirements)]
            if subprocess.run(argv, check=False).returncode != 0:
                raise LabError(f"failed: {' '.join(argv)}")
            part.rename(done)
    return done


def room(root: Path, site: Path, work: Path) -> Room:
    utils = Path(ansible.__file__).parent / "module_utils"
    return Room(
        lower=root, layer=work / "layer", hostname="py39",
        # A package with nothing but module_utils, as on a managed node.
        files={"/aidc/ansible/ansible/__init__.py": b""},
        binds=(Bind(ROOT, "/aidc/checkout"), Bind(site, "/aidc/site"), Bind(work / "payloads", "/aidc/payloads"),
               Bind(utils, "/aidc/ansible/ansible/module_utils")))


def main(arguments: list[str]) -> int:
    cache = state_dir(create=True) / "cache"
    cache.mkdir(exist_ok=True)
    root, site = ensure(cache, PYTHON39, say), packages(cache)
    chosen, left_out = selection.choose()
    if not chosen:
        raise LabError("no test file of tests/unit/plugins runs on managed nodes: the rule in selection.py is broken")
    for test, reason in left_out.items():
        say(f"left out: {test.relative_to(ROOT)} ({reason})")
    with tempfile.TemporaryDirectory(prefix="aidc-py39-") as name:
        work = Path(name)
        for part in ("layer", "payloads"):
            (work / part).mkdir()
        say(f"payloads of {payloads.write(work / 'payloads')} modules")
        if large := payloads.too_large(work / "payloads"):
            say(f"got payloads of {large} KiB, wanted at most what tests/budgets.yml says")
            return 1
        tests = arguments or ["tests/py39", *(str(test.relative_to(ROOT)) for test in chosen)]
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb",
            "PYTHONPATH": "/aidc/checkout:/aidc/checkout/.collections:/aidc/site:/aidc/ansible",
            "PYTHONDONTWRITEBYTECODE": "1", "AIDC_PAYLOADS": "/aidc/payloads",
            "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis",
        }
        argv = ["python3", "-m", "pytest", "--hypothesis-profile=short", "--numprocesses=auto",
                "--dist=loadfile", *tests]
        code = run(room(root, site, work), argv, environment, "/aidc/checkout", LIMIT_SECONDS)
    if code == NO_TESTS_COLLECTED:
        say("FAILED: no tests were collected")
    return code


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("py39: root is needed: the tests run in namespaces of their own")
    try:
        sys.exit(main(sys.argv[1:]))
    except (LabError, StateError) as error:
        sys.exit(f"py39: {error}")
