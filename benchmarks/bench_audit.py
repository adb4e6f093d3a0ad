#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time of the audit of a large fleet from its record on disk, and what it finds there.

    PYTHONPATH=. python benchmarks/bench_audit.py [--hosts 4096] [--seconds 5]

Writes a consistent fleet of hosts with 8 rails, with 30 seeded inconsistencies of different rules on 30 hosts, and runs
the audit's command line on it as a process of its own. Exit code 1 if it takes longer, if its time grows faster than
the fleet (against a quarter of it), if one of the 30 is not found, or if anything else is.
"""
from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from plugins.module_utils._audit import expect
from plugins.module_utils._audit.io import EXPECT
from plugins.module_utils._fleet import record
from tests.unit.plugins.module_utils._audit import fleet
from tests.unit.plugins.module_utils._audit.cases import CASES, put

# Cases that change records of one host only, and no address, as another host of so many may have it.
SEEDS = [name for name, case in CASES.items() if set(case) == {"set", "finds", "twin"} and "address" not in name
         and "subnet" not in name and None not in case["set"].values()][:30]
# The process starts and reads a file or two, whatever the size; and other work goes on beside it.
GROWTH, START = 1.4, 0.3


def host_name(index: int) -> str:
    return f"{fleet.BIG.name}-{index + 1:04}"


def write(folder: Path, hosts: int) -> dict[tuple[str, int | None], str]:
    """The record and the expectations; what is wrong as (rule, rail) -> host."""
    now = datetime.now(timezone.utc).strftime(record.TIME_FORMAT)
    step = hosts // len(SEEDS)
    seeded = {number * step + 1: name for number, name in enumerate(SEEDS)}
    values, places = fleet.BIG.values(0), {}
    for index in range(hosts):
        name, far = host_name(index), (index + 1) % hosts
        data = fleet.records(fleet.BIG, index, host_name(far), far)
        for path, value in CASES[seeded[index]]["set"].items() if index in seeded else ():
            put(data, path, value)
        for kind, content in data.items():
            path = folder / kind / f"{name}.json"
            path.parent.mkdir(exist_ok=True)
            document = record.build(kind, name, now, None, content)
            path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        rails = {fleet.BIG.pci(rail): [f"{fleet.address(fleet.BIG, rail, index)}/12", fleet.subnet(fleet.BIG, rail), []]
                 for rail in range(fleet.BIG.rails)}
        places[name] = {"pool": expect.pool(values), "policy": 0, "rails": rails}
    wanted = {"schema_version": expect.SCHEMA_VERSION, "policies": [expect.policy(values)], "hosts": places}
    (folder / EXPECT).parent.mkdir()
    (folder / EXPECT).write_text(json.dumps(wanted), encoding="utf-8")
    return {(rule, rail): host_name(index) for index, name in seeded.items()
            for rule, rail in CASES[name]["finds"].items()}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder: Path) -> tuple[float, float, dict[str, t.Any]]:
    """(seconds of processor time, seconds by the clock, report); on a busy machine only the first says something."""
    start, before = time.perf_counter(), _children()
    done = subprocess.run([sys.executable, "-m", "plugins.module_utils._audit.cli", str(folder), "--json"],
                          capture_output=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 2:
        raise SystemExit(f"audit: exit code {done.returncode}\n{done.stderr.decode()}")
    return _children() - before, seconds, t.cast("dict[str, t.Any]", json.loads(done.stdout))


def measure(hosts: int) -> tuple[float, float, int, int, float]:
    """(best of two runs, the same by the clock, seeded that were found, findings not seeded, MB on disk)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeded = write(folder, hosts)
        size = sum(path.stat().st_size for path in folder.rglob("*.json")) / 1e6
        (cpu, clock, document), (cpu_again, clock_again, _same) = run(folder), run(folder)
    seen = [((one["id"], one["rail"]), one["hosts"]) for one in document["findings"]]
    found = sum(seeded.get(key) in hosts and len(hosts) == 1 for key, hosts in seen)
    return min(cpu, cpu_again), min(clock, clock_again), found, len(seen) - found, size


def main() -> int:
    parser = argparse.ArgumentParser(description="Time of the audit of a large fleet")
    parser.add_argument("--hosts", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    code, times = 0, []
    for hosts in (options.hosts // 4, options.hosts):
        seconds, clock, found, other, size = measure(hosts)
        failed = found != len(SEEDS) or other or seconds > options.seconds
        code |= bool(failed)
        times.append(seconds)
        print(f"audit {hosts:6} hosts x {fleet.BIG.rails} rails {size:6.0f} MB {seconds:6.2f} s CPU ({clock:.2f} s by "
              f"the clock); found {found} of {len(SEEDS)}, {other} invented{' FAILED' if failed else ''}", flush=True)
    slower = times[1] - START > 4 * GROWTH * max(times[0] - START, 0.1)
    print(f"audit: four times the hosts take {times[1] / times[0]:.1f} times as long{' FAILED' if slower else ''}")
    return code | slower


if __name__ == "__main__":
    sys.exit(main())
