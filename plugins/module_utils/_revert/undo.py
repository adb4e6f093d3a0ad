# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The program that undoes a change in its time, unless the controller cancels it; after a reboot, at once. It stands
alone: its text is copied to the host's /var and started by a timer, or by a unit of the next boot, when our modules are
gone. Standard library, Python 3.9 or later.

    python3 -I undo.py RECORD [--boot]
"""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import typing as t

Fields = dict[str, t.Any]
Run = t.Callable[[t.Sequence[str]], str]
Sleep = t.Callable[[float], None]

COMMAND_SECONDS = 60.0
# A manager of the network is still at work when its tool has come back, and may take away what is set meanwhile.
SETTLE_SECONDS = 2.0
# A module that holds the lock so long hangs; the way to the host is worth more.
LOCK_SECONDS = 300.0
BOOT_ID = "/proc/sys/kernel/random/boot_id"
NETPLAN = "/etc/netplan/"
POLL_SECONDS = 0.2


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def load(path: str) -> Fields | None:
    """The record, or None once it was cancelled."""
    try:
        with open(path, encoding="utf-8") as stream:
            found: Fields = json.load(stream)
            return found
    except (FileNotFoundError, ValueError):
        return None


def replace(path: str, text: str, mode: int) -> None:
    """The file in one step, on the disk when this returns."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".aidc-", dir=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    os.replace(name, path)


def put_back(file: Fields, root: str) -> None:
    path = root + file["path"]
    if file["text"] is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    else:
        replace(path, file["text"], file["mode"])


def tool(argv: t.Sequence[str]) -> str:
    """What went wrong, or nothing. The runner of the collection is not there when this runs."""
    environment = {**os.environ, "LC_ALL": "C"}
    environment["PATH"] = environment.get("PATH", "") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    try:
        done = subprocess.run(list(argv), stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS,
                              env=environment, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).decode("utf-8", "replace").strip()[:200]


def carry_out(command: t.Sequence[str], root: str, run: Run) -> str:
    if command[0] != "write":
        return run(command)
    with open(root + command[1], "w", encoding="ascii") as stream:
        stream.write(command[2] + "\n")
    return ""


def restore(record: Fields, run: Run = tool, root: str = "", sleep: Sleep = time.sleep) -> list[str]:
    """All that was saved; a part that fails does not stop the others. Returns what failed."""
    problems = []
    for file in record["files"]:
        try:
            put_back(file, root)
        except OSError as error:
            problems.append(f"{file['path']}: {error.strerror or error}")
    for part in ("commands", "links"):
        for command in record[part]:
            try:
                wrong = carry_out(command, root, run)
            except OSError as error:
                wrong = error.strerror or str(error)
            if wrong:
                problems.append(f"{' '.join(command)}: {wrong}")
        if part == "commands" and record["commands"]:
            sleep(SETTLE_SECONDS)
    return problems


@contextlib.contextmanager
def locked(path: str, sleep: Sleep) -> t.Iterator[None]:
    """The host's lock, which a module holds until its last write."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    break
            sleep(POLL_SECONDS)
        holder = {"pid": os.getpid(), "user": "root", "what": "armed revert", "since": now()}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def rebooted(record: Fields) -> bool:
    with open(BOOT_ID, encoding="ascii") as stream:
        return record.get("boot_id", "") not in ("", stream.read().strip())


def for_a_boot(record: Fields) -> Fields:
    """The files alone, as no link and no manager of the network is there yet; but netplan has written its own files."""
    uses_netplan = any(file["path"].startswith(NETPLAN) for file in record["files"])
    return {**record, "commands": [["netplan", "generate"]] if uses_netplan else [], "links": []}


def step(path: str, record: Fields) -> float | None:
    """Under the lock: seconds to wait, or None when all is over."""
    another = rebooted(record)
    left: float = record["deadline"] - time.monotonic()
    if left > 0 and not another:
        return left
    replace(path, json.dumps({**record, "state": "undoing"}), 0o600)
    problems = restore(for_a_boot(record), sleep=lambda _seconds: None) if another else restore(record)
    for unit in record.get("unit_files", ()):
        with contextlib.suppress(OSError):
            os.unlink(unit)
    if record.get("unit_files") and not another:
        tool(["systemctl", "daemon-reload"])
    # The note that the next run reads.
    note = {**record, "state": "undone", "problems": problems, "files": [], "commands": [], "links": [],
            "unit_files": [], "undone_at": now(), "rebooted": another}
    replace(path, json.dumps(note), 0o600)
    return None


def main(path: str, at_boot: bool = False, sleep: Sleep = time.sleep) -> int:
    """``at_boot``: started by the unit, which anything that asks for sysinit.target starts in the same boot, too; then
    the timer is there, and nothing may wait for it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        record = load(path)
        if record is None or record["state"] == "undone" or (at_boot and not rebooted(record)):
            return 0
        with locked(record["lock"], sleep):
            # It may have been cancelled, or its time prolonged, while we waited for the lock.
            record = load(path)
            left = step(path, record) if record is not None and record["state"] != "undone" else None
        if left is None:
            return 0
        sleep(min(left, 1.0))


if __name__ == "__main__":
    main(sys.argv[1], "--boot" in sys.argv[2:])
