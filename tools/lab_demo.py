#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``make lab`` does: start the lab, run site.yml on it as a user would type it, say what to try next."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"

NEXT = """\
Try next, in this folder:
  .venv/bin/ansible-playbook site.yml -i inventories/lab            again: nothing changes
  ./lab/lab exec gb1 ip link set enp3s0f0np0 mtu 1500               change a value behind its back, then
  .venv/bin/ansible-playbook site.yml -i inventories/lab --check --diff
  ./lab/lab reboot gb1        the MTU comes back from the file
  ./lab/lab status            the hosts; `./lab/lab --help` for the rest
  make lab-down               remove the lab; caches stay in the state directory
"""


def run(argv: list[str]) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    code = subprocess.run(argv, cwd=ROOT, env=environment, check=False).returncode
    if code != 0:
        sys.exit(f"make lab: stopped: {' '.join(argv)} ended with exit status {code}")


def main() -> None:
    start = time.monotonic()
    run([str(BIN / "python"), "-m", "lab", "up"])
    command = ["ansible-playbook", "site.yml", "-i", "inventories/lab"]
    print(f"\n$ {' '.join(command)}", flush=True)
    run([str(BIN / command[0]), *command[1:]])
    print(f"make lab: {time.monotonic() - start:.0f} s\n\n{NEXT}", end="")


if __name__ == "__main__":
    main()
