#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tiers of ``make test`` one after the other, each under its own time limit.

A tier is a list of commands. The first that fails or runs out of time ends the run. The last
line of a good run is the summary of the last pytest.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
TOTAL_LIMIT_SECONDS = 40 * 60


@dataclass(frozen=True)
class Tier:
    limit_seconds: int
    commands: tuple[tuple[str, ...], ...]


TIERS = {
    "lint": Tier(300, (
        ("ruff", "check", "."),
        ("mypy", "plugins", "lab", "tools", "tests", "benchmarks"),
        ("yamllint", "-s", "."),
        ("ansible-lint", "-q"),
    )),
    "unit": Tier(300, (("pytest", "tests/unit"),)),
    "integration": Tier(1500, (("pytest", "tests/integration"),)),
}


def run(argv: tuple[str, ...], seconds: float) -> int:
    """Run one command of the virtual environment; on time-out end its whole process group."""
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / '.collections'}",
        "MYPYPATH": str(ROOT / ".collections"),
        "LC_ALL": "C.UTF-8",
    }
    if argv[0] == "ansible-lint":
        # Its syntax check runs without an inventory, which ansible.cfg takes for an error.
        environment["ANSIBLE_INVENTORY"] = "localhost,"
    process = subprocess.Popen([str(BIN / argv[0]), *argv[1:]], cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        return 124


def main(names: list[str]) -> int:
    start = time.monotonic()
    for position, name in enumerate(names):
        tier, tier_start = TIERS[name], time.monotonic()
        print(f"== {name} (limit {tier.limit_seconds} s)", flush=True)
        for argv in tier.commands:
            left = min(tier.limit_seconds - (time.monotonic() - tier_start),
                       TOTAL_LIMIT_SECONDS - (time.monotonic() - start))
            code = run(argv, max(left, 1))
            if code != 0:
                why = f"ran out of its {tier.limit_seconds} s" if code == 124 else f"exit status {code}"
                print(f"== {name} FAILED: {' '.join(argv)}: {why}", flush=True)
                return code
        # The last tier's seconds stand in pytest's own summary, which must be the last line.
        if position < len(names) - 1 or "pytest" not in tier.commands[-1][0]:
            print(f"== {name}: {time.monotonic() - tier_start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in TIERS]
    if unknown or len(sys.argv) < 2:
        sys.exit(f"usage: tiers.py {' '.join(TIERS)} (got {' '.join(sys.argv[1:]) or 'nothing'})")
    sys.exit(main(sys.argv[1:]))
