#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the README promises, on a clean machine: a Debian 12 with Python, git and make and nothing else.

    tools/fresh.py [TARGET ...]          default: test lab lab-down

The checkout's HEAD is cloned into a new root with namespaces of its own (mounts, processes, host name, cgroups;
the network is the machine's), and make runs there. How this machine reaches apt's and pip's mirrors is passed in
at run time. A process of its own removes everything at the end, also when this one is killed. Standard library only.
"""
from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab import cgroup  # noqa: E402  (needs the path above)
from lab.debian import Root, ensure, sources  # noqa: E402
from lab.instance import LabError, cgroup_mount  # noqa: E402
from lab.state import DEFAULT, StateError, state_dir  # noqa: E402
from tools.chroot import Bind, Room, run  # noqa: E402

CLEAN = Root("root-fresh", "bookworm", ("ca-certificates", "git", "make", "python3"))
TARGETS = ("test", "lab", "lab-down")
CHECKOUT = "/root/checkout"
# Settings of this machine that make apt, pip and git work here; nothing else of the environment goes in.
VARIABLES = re.compile(r"PIP_\w+|(https?|ftp|no|all)_proxy|\w*_(CA_BUNDLE|CERT_FILE|CERT_DIR|CAINFO)|AIDC_LAB_MIRROR",
                       re.IGNORECASE)
FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/apt/apt.conf")
USER_FILES = (".config/pip/pip.conf", ".pip/pip.conf")
FOLDERS = ("/etc/apt/apt.conf.d", "/etc/apt/auth.conf.d", "/etc/apt/trusted.gpg.d", "/etc/apt/keyrings",
           "/usr/share/keyrings")
# Settings of apt that run a program, which the clean machine does not have.
HOOK = re.compile(rb"Invoke|Pre-Install-Pkgs")


def say(text: str) -> None:
    print(f"fresh: {text}", flush=True)


def environment() -> dict[str, str]:
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
        "TERM": "dumb", "ASSUME_YES": "1",
        **{name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)},
    }


def machine_files(lower: Path) -> dict[str, bytes]:
    """This machine's settings of apt, pip and name resolution, by where they go."""
    found: dict[str, bytes] = {}
    named = [value for name, value in os.environ.items()
             if VARIABLES.fullmatch(name) and value.startswith("/") and Path(value).is_file()]
    for name in (*FILES, *named):
        if Path(name).is_file():
            found[name] = Path(name).read_bytes()
    for name in USER_FILES:
        if (Path.home() / name).is_file():
            found[f"/root/{name}"] = (Path.home() / name).read_bytes()
    for folder in FOLDERS:
        for file in sorted(Path(folder).glob("*")):
            # What the clean machine has of its own stays.
            if file.is_file() and not (lower / str(file).lstrip("/")).exists() and not HOOK.search(file.read_bytes()):
                found[str(file)] = file.read_bytes()
    text = sources(CLEAN.suite)
    if text is not None:
        suffix = "sources" if re.search(r"^Types:", text, re.MULTILINE) else "list"
        found["/etc/apt/sources.list"] = b""
        found[f"/etc/apt/sources.list.d/debian.{suffix}"] = text.encode()
    return found


def wheel_folders() -> tuple[Bind, ...]:
    """Folders of this machine that pip looks into."""
    words = os.environ.get("PIP_FIND_LINKS", "").split()
    return tuple(Bind(Path(word), word) for word in words if word.startswith("/") and Path(word).is_dir())


def bundle(target: Path) -> str:
    """HEAD with its history as one file. Returns its name for the user."""
    subprocess.run(["git", "bundle", "create", "-q", str(target), "HEAD"], cwd=ROOT, check=True)
    log = ["git", "log", "-1", "--format=%h %s"]
    state = ["git", "status", "--porcelain"]
    head, dirty = (subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
                   for argv in (log, state))
    return head + (" (what is not committed is left out)" if dirty else "")


def remove(group: Path, work: Path) -> None:
    if group.exists():
        cgroup.kill(group)
        cgroup.remove(group)
    if work.exists():
        shutil.rmtree(work)


class Janitor:
    """A process that cleans up when this one has ended, however it did."""

    def __init__(self, clean: Callable[[], None]) -> None:
        reading, self.writing = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            os.close(reading)
            return
        code = 1
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.close(self.writing)
            os.read(reading, 1)
            clean()
            code = 0
        except BaseException as error:  # its last words; anything else would be lost
            print(f"fresh: cleaning up: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)

    def finish(self) -> None:
        os.close(self.writing)
        if os.waitpid(self.pid, 0)[1]:
            raise LabError("something is left, see above; the next run removes it")


def script(targets: Sequence[str]) -> str:
    """Clone, then the targets one after the other; a failed one does not keep the next from running."""
    lines = ["code=0", f"git clone -q /aidc.bundle {CHECKOUT} && cd {CHECKOUT} || exit 9"]
    for target in targets:
        lines += [f'echo "fresh: make {target}"; start=$(date +%s); how="done in"',
                  f'make {target} </dev/null || {{ code=1; how="FAILED after"; }}',
                  f'echo "fresh: make {target} $how $(($(date +%s) - start)) s"']
    return "\n".join([*lines, "exit $code"])


def inside(lower: Path, work: Path, group: Path, targets: Sequence[str]) -> int:
    for directory in (work, work / "layer", work / "state", group):
        directory.mkdir()
    say(f"cloning {bundle(work / 'bundle')}")
    room = Room(
        lower=lower, layer=work / "layer", hostname="fresh", memory=False, network=True, cgroup=group,
        files=machine_files(lower),
        # Not in the root itself, which is an overlay.
        binds=(Bind(work / "bundle", "/aidc.bundle"), Bind(work / "state", DEFAULT, read_only=False), *wheel_folders()))
    return run(room, ["sh", "-c", script(targets)], environment(), "/root")


def main(targets: Sequence[str]) -> int:
    start, state = time.monotonic(), state_dir(create=True)
    cache, work = state / "cache", state / "fresh"
    # One at a time for each state directory.
    group = cgroup_mount() / f"aidc-fresh-{hashlib.sha256(bytes(state)).hexdigest()[:8]}"
    cache.mkdir(exist_ok=True)
    with open(cache / "fresh.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError("another make fresh is at work in this state directory, or still being removed") from None
        lower = ensure(cache, CLEAN, say)
        remove(group, work)
        janitor = Janitor(lambda: remove(group, work))
        try:
            code = inside(lower, work, group, targets)
        finally:
            janitor.finish()
    say(f"{'all good' if code == 0 else 'FAILED'}, {time.monotonic() - start:.0f} s")
    return code


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("fresh: root is needed: the clean machine is made of namespaces, mounts and cgroups")
    try:
        sys.exit(main(sys.argv[1:] or TARGETS))
    except (LabError, StateError, subprocess.CalledProcessError) as error:
        sys.exit(f"fresh: {error}")
