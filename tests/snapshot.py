# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is at a moment, so that a test can say that nothing was changed.

    python -m tests.snapshot take LAB FOLDER HOST ...       one FOLDER/HOST.json per host
    python -m tests.snapshot compare LAB FOLDER HOST ...    exit status 1 and the differences, if there are any

A file counts by its change time, which no program can set: a file that was written and put back is a change, too.
The host runs this same file (``python3 - read``), so it needs the standard library alone.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

# Written to by login sessions and by the host itself, whatever a play does.
NOISE = (
    "/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp", "/var/log", "/var/lib/systemd/timers",
    "/root/.ansible", "/home/ops/.ansible",
    # The apt module opens apt's lists in check mode, too, which writes its cache of them.
    "/var/cache/apt",
)
# Where such a folder appears for the first time, its parent changes; what else is new there has a line of its own.
NOISY = {os.path.dirname(path) for path in NOISE}
# Values that move by themselves.
COUNTERS = {"statistics", "byte_queue_limits", "carrier_changes", "carrier_up_count", "carrier_down_count", "uevent",
            "nf_conntrack_count"}
DEVICES = ("/sys/class/net", "/sys/class/infiniband", "/sys/bus/pci/devices", "/sys/kernel/config")
COMMANDS = (
    ("ip", "-o", "link"), ("ip", "-o", "address"), ("ip", "rule"), ("tc", "qdisc"),
    ("ip", "-4", "route", "show", "table", "all"), ("ip", "-6", "route", "show", "table", "all"),
    ("systemctl", "list-unit-files", "--no-legend", "--plain"),
    ("systemctl", "list-units", "--all", "--no-legend", "--plain", "--type=service,socket,timer,target"),
)
# Units that come and go with SSH logins and timers; NetworkManager's dispatcher, hostnamed and timedated end when idle.
PASSING = ("session-", "user@", "user-", "systemd-tmpfiles-clean", "ssh@", "sshd@", "systemd-hostnamed.",
           "NetworkManager-dispatcher.", "systemd-timedated.")
# A snapshot that sees little would find no change.
LEAST = {"/etc/": 300, "/usr/": 5000, "/sys/": 50, "/proc/sys/net/": 50, "ip ": 5, "systemctl ": 50}
SHOWN = 30

State = dict[str, str]


def root_files(top: str = "/", noise: tuple[str, ...] = NOISE) -> State:
    """Every file and folder of the root file system: change time, size, mode, owner."""
    found: State = {}
    for base, folders, names in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(base, name) not in noise]
        for name in folders + names:
            path = os.path.join(base, name)
            try:
                stat = os.lstat(path)
            except FileNotFoundError:  # it was there a moment ago: somebody is at work
                found[path] = "gone"
                continue
            times = "" if path in NOISY else f"{stat.st_ctime_ns} {stat.st_size} "
            found[path] = f"{times}{stat.st_mode:o} {stat.st_uid}:{stat.st_gid}"
    return found


def text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(8192).hex()
    except OSError as error:
        return f"errno {error.errno}"


def devices(tops: tuple[str, ...] = DEVICES) -> State:
    """All values under the devices' folders in sysfs; each device once, under its real path."""
    found: State = {}
    names = [os.path.join(top, name) for top in tops if os.path.isdir(top) for name in os.listdir(top)]
    for device in sorted({os.path.realpath(name) for name in names}):
        for base, folders, files in os.walk(device):
            folders[:] = [name for name in folders if name not in COUNTERS]
            found.update({os.path.join(base, name): text_of(os.path.join(base, name))
                          for name in files if name not in COUNTERS})
    return found


def sysctls(top: str = "/proc/sys/net") -> State:
    return {os.path.join(base, name): text_of(os.path.join(base, name))
            for base, _folders, names in os.walk(top) for name in names if name not in COUNTERS}


def outputs(commands: tuple[tuple[str, ...], ...] = COMMANDS) -> State:
    found: State = {}
    for argv in commands:
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
        except FileNotFoundError:
            found[" ".join(argv)] = "no such command"
            continue
        lines = done.stdout.splitlines()
        if argv[1] == "list-units":
            # UNIT LOAD ACTIVE SUB: the description may hold a changing text.
            lines = [" ".join(line.split()[:4]) for line in lines]
        found.update({f"{' '.join(argv)}: {line}": "there" for line in lines if not line.startswith(PASSING)})
    return found


def settle(seconds: float = 10.0) -> None:
    """Just after boot the kernel still probes its IPv6 addresses, which ends by itself."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done = subprocess.run(["ip", "-o", "address", "show", "tentative"], capture_output=True, text=True, check=True)
        if not done.stdout:
            return
        time.sleep(0.1)


def read() -> State:
    settle()
    return {**outputs(), **root_files(), **devices(), **sysctls()}


def take(lab: str, host: str) -> State:
    """The state of a host, read as its root without SSH (a login leaves traces)."""
    with open(__file__, "rb") as program:
        done = subprocess.run([sys.executable, "-m", "lab", "--name", lab, "exec", host, "python3", "-", "read"],
                              stdin=program, capture_output=True, text=True, check=False, timeout=120,
                              cwd=Path(__file__).resolve().parents[1])
    if done.returncode:
        raise RuntimeError(f"{host}: snapshot: exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
    state: State = json.loads(done.stdout)
    for kind, least in LEAST.items():
        count = sum(key.startswith(kind) for key in state)
        if count < least:
            raise RuntimeError(f"{host}: snapshot: got {count} entries of {kind}, wanted at least {least}")
    return state


def difference(before: State, after: State) -> list[str]:
    """One line per entry that came, went or changed, in order of the names."""
    return [f"{key}: {before.get(key, 'not there')} -> {after.get(key, 'not there')}"
            for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]


def main(argv: list[str]) -> int:
    if argv == ["read"]:
        json.dump(read(), sys.stdout)
        return 0
    if len(argv) < 4 or argv[0] not in ("take", "compare"):
        print(f"snapshot: got {' '.join(argv) or 'nothing'}, wanted take|compare LAB FOLDER HOST ...", file=sys.stderr)
        return 2
    command, lab, folder, *hosts = argv
    where, code = Path(folder), 0
    where.mkdir(parents=True, exist_ok=True)
    for host in hosts:
        state, file = take(lab, host), where / f"{host}.json"
        if command == "take":
            file.write_text(json.dumps(state), encoding="utf-8")
            print(f"{host}: {len(state)} entries")
            continue
        found = difference(json.loads(file.read_text(encoding="utf-8")), state)
        code = code or int(bool(found))
        print(f"{host}: {len(state)} entries, {len(found)} differ")
        print("\n".join(found[:SHOWN]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
