#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tiers of ``make test`` or ``make full`` one after the other, each under its own time limit.

    tiers.py test | full | TIER ...

A tier is a list of commands. The first that fails or runs out of time ends the run. The last
line of a good run is the summary of the last pytest.
"""
from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
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
        ("mypy", "lab", "tools", "tests", "plugins", "benchmarks"),
        ("yamllint", "-s", "."),
        ("ansible-lint", "-q"),
    )),
    # A file's tests stay together, as they share what is costly to make.
    "unit": Tier(600, (("pytest", "tests/unit", "-m", "not slow", "--numprocesses=auto", "--dist=loadfile"),)),
    "unit-all": Tier(900, (("pytest", "tests/unit", "--numprocesses=auto", "--dist=loadfile"),)),
    "py39": Tier(400, (("python", "-m", "tests.py39"),)),
    "sanity": Tier(300, (("python", "tests/sanity.py"),)),
    "sanity-all": Tier(300, (("python", "tests/sanity.py", "--all"),)),
    "fuzz": Tier(1800, (
        ("python", "tests/fuzz/fuzz_nccl.py", "--count", "100000", "--engine", "mutate"),
        ("python", "tests/fuzz/fuzz_nccl.py", "--count", "100000", "--engine", "hypothesis"),
    )),
    # What the box leaves is named; molecule-all has no box.
    "molecule": Tier(900, (("python", "-m", "tests.molecule", "--box", "420"),)),
    "molecule-all": Tier(3600, (("python", "-m", "tests.molecule", "--all"),)),
    # Rows of faults of the fabric; those of the lab itself are tests/integration/test_faults.py.
    # Wanted in 480 s; on two cores with other work 24 of the faults and twins came in that time, so it is let end.
    "faults": Tier(1500, (("python", "-m", "tests.faults"),)),
    "integration": Tier(2000, (("pytest", "tests/integration", "-m", "not slow"),)),
    # With test_faults.py, all of it.
    "integration-all": Tier(5400, (("pytest", "tests/integration"),)),
}
RUNS = {
    "test": ("lint", "unit", "py39", "sanity", "molecule", "integration"),
    "full": ("lint", "unit-all", "py39", "sanity-all", "fuzz", "molecule-all", "faults", "integration-all"),
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
        environment["ANSIBLE_INVENTORY"] = str(ROOT / "tests" / "lint" / "hosts.yml")
    # What a shell starts in the background ignores SIGINT, and so would what we start: its lab would stay.
    process = subprocess.Popen([str(BIN / argv[0]), *argv[1:]], cwd=ROOT, env=environment, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return 124
    finally:
        # Also when this program is ended: labs of the tests would go on without it.
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    # SIGINT lets pytest remove its labs.
    for number, seconds in ((signal.SIGINT, 60), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        os.killpg(process.pid, number)
        try:
            process.wait(timeout=seconds)
            return
        except subprocess.TimeoutExpired:
            continue


def main(names: Sequence[str], total_seconds: float) -> int:
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    start = time.monotonic()
    for position, name in enumerate(names):
        tier, tier_start = TIERS[name], time.monotonic()
        print(f"== {name} (limit {tier.limit_seconds} s)", flush=True)
        for argv in tier.commands:
            left = min(tier.limit_seconds - (time.monotonic() - tier_start),
                       total_seconds - (time.monotonic() - start))
            code = run(argv, max(left, 1))
            if code != 0:
                why = f"ran out of its {left:.0f} s" if code == 124 else f"exit status {code}"
                print(f"== {name} FAILED: {' '.join(argv)}: {why}", flush=True)
                return code
        # The last tier's seconds stand in pytest's own summary, which must be the last line.
        if position < len(names) - 1 or "pytest" not in tier.commands[-1][0]:
            print(f"== {name}: {time.monotonic() - tier_start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) == 1 and arguments[0] in RUNS:
        # Only the run that people and CI wait for has a limit in all.
        sys.exit(main(RUNS[arguments[0]], TOTAL_LIMIT_SECONDS if arguments[0] == "test" else math.inf))
    if not arguments or not set(arguments) <= set(TIERS):
        sys.exit(f"usage: tiers.py {' | '.join([*RUNS, *TIERS])} ... (got {' '.join(arguments) or 'nothing'})")
    sys.exit(main(arguments, math.inf))
