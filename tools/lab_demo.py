#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``make lab`` does: start the lab, run site.yml on it as a user would type it, show what came out."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import yaml

from plugins.module_utils._fleet import rails, store
from plugins.module_utils._gate import report

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
INVENTORY = ROOT / "inventories" / "lab"
NEXT = """\
Try next, in this folder:
  .venv/bin/ansible-playbook site.yml -i inventories/lab                   again: nothing changes
  ./lab/lab exec gb1 ip link set enp3s0f0np0 mtu 1500                      change a value behind its back, then
  .venv/bin/ansible-playbook site.yml -i inventories/lab --check --diff    see what would be put back
  ./lab/lab exec gb2 tc qdisc add dev enp3s0f0np0 root tbf rate 20mbit burst 32k latency 100ms
  .venv/bin/ansible-playbook playbooks/gate.yml -i inventories/lab         the gate names the slow rail
  ./lab/lab exec gb2 tc qdisc del dev enp3s0f0np0 root                     mend it
  ./lab/lab reboot gb1; ./lab/lab status; ./lab/lab --help
  make lab-down                                                            remove the lab; caches stay
"""


def run(argv: list[str]) -> int:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(argv, cwd=ROOT, env=environment, check=False).returncode


def hosts() -> list[str]:
    """Hosts with rails, in the inventory's order."""
    groups = yaml.safe_load((INVENTORY / "hosts.yml").read_text(encoding="utf-8"))["all"]["children"]
    return [name for group, body in groups.items() if group != "login" for name in body["hosts"]]


def last_screen() -> str:
    """Hosts x rails, one verdict for each pool, and where the reports are; all from the stored records."""
    state = INVENTORY / ".state"
    lines = rails.rail_table(store.load(state, "mlx5_info"), hosts(), datetime.now(timezone.utc))
    reports = sorted((state / "gate").glob("*.json"))
    records = [json.loads(path.read_text(encoding="utf-8")) for path in reports]
    return "\n".join([*lines, "", *report.table(records), "", f"Gate reports: {state / 'gate'}"])


def main() -> int:
    start = time.monotonic()
    code = run([str(BIN / "python"), "-m", "lab", "up"])
    if code != 0:
        print("make lab: the lab did not start; the reason stands above", file=sys.stderr)
        return code
    command = ["ansible-playbook", "site.yml", "-i", "inventories/lab"]
    print(f"\n$ {' '.join(command)}", flush=True)
    code = run([str(BIN / command[0]), *command[1:]])
    if code != 0:
        # Not the tables: what is stored may be from an earlier run.
        print("make lab: site.yml FAILED; the reason stands above", file=sys.stderr)
        return code
    print(f"{last_screen()}\n\nmake lab: {time.monotonic() - start:.0f} s\n\n{NEXT}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
