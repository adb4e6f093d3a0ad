# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the rows of fabric.yml on a lab of their own: ``python -m tests.faults [--quick] [--fleet FILE] [ROW ...]``."""
from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from lab.instance import Instance
from tests.faults import report, rows
from tests.faults.evaluate import Evaluator
from tests.lab_plugin import Lab, run_lab

FOLDER = Path(__file__).parent
DOCS = FOLDER.parents[1] / "docs/faults.md"
SETUP = ("playbooks/packages.yml", "playbooks/fabric.yml")
# What is asked of the clean lab before the first row.
SILENT = ("rail_network", "mlx5_port", "roce_qos", "roce_gid", "mlx5_nvconfig", "mlx5_info", "path_probe", "audit")


def set_up(lab: Lab, fleet: str) -> None:
    run_lab("up", "--fleet", fleet, "--inventory", str(lab.inventory), name=lab.instance.name)
    for playbook in SETUP:
        done = lab.play(playbook, may_meet_nobody=True)
        if done.code:
            raise SystemExit(f"{playbook}:\n{done.text[-4000:]}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="ROW", help="rows or pairs (default: all)")
    parser.add_argument("--quick", action="store_true", help="those that `make test` runs")
    parser.add_argument("--fleet", default=str(FOLDER / "fleet.yml"), help="fleet file of the lab")
    parser.add_argument("--name", default="faults", help="name of the lab's instance")
    parser.add_argument("--keep", action="store_true", help="use a lab that runs, and let it run")
    parser.add_argument("--docs", action="store_true", help="write the table of docs/faults.md anew, and no more")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    args = parser.parse_args(argv)
    table, pairs = rows.load()
    unknown = sorted(set(args.names) - set(table) - set(pairs))
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are: {', '.join([*table, *pairs])}")
    if args.docs:
        DOCS.write_text(report.inserted(DOCS.read_text(encoding="utf-8"), table, pairs), encoding="utf-8")
        return 0
    chosen, both = rows.choose(table, pairs, args.names, args.quick)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        instance = Instance(args.name)
        lab = Lab(instance, instance.dir / "inventory")
        try:
            if not args.keep or not instance.exists():
                set_up(lab, args.fleet)
            evaluator = Evaluator(instance, lab.inventory, args.fleet, folder)
            print(f"lab set up ({time.monotonic() - start:.0f} s)", flush=True)
            loud = evaluator.silent(SILENT)
            if loud:
                print("the clean lab has findings:", *loud, sep="\n    ")
                return 1
            results = evaluator.run(chosen, both)
        finally:
            if not args.keep:
                run_lab("down", name=args.name)
    print(report.text(results, time.monotonic() - start))
    if args.json:
        args.json.write_text(json.dumps(report.data(results), indent=1) + "\n", encoding="utf-8")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
