# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error rates of the planner: ``python -m tests.sim.table [--clusters 3000] [--sizes 8 64] [--seed 1]``.

Prints Markdown. The tables in RESULTS.md come from a run without options.
"""
from __future__ import annotations

import argparse
import multiprocessing
import sys
import typing as t
from collections import Counter

from .trial import Tally, quantile, trials, wilson
from .world import FAULTS

SIZES = (8, 64, 512, 4096)
NOISES = (0.01, 0.03, 0.05)
CLUSTERS = {4096: 300}
DEFAULT_CLUSTERS = 3000
Cell = tuple[int, float, int]


def work(job: tuple[Cell, int, int, tuple[str, ...]]) -> tuple[Cell, Tally]:
    (size, noise, faults), clusters, seed, kinds = job
    return (size, noise, faults), trials(size, clusters, faults, noise, seed * 97 + faults, kinds)


def merged(tallies: t.Iterable[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total.clusters += one.clusters
        for name in ("faults", "missed", "hinted", "verdicts"):
            getattr(total, name).update(getattr(one, name))
        for name in ("wrong_nodes", "wrong_paths", "rails_named", "rails_wrong"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        for name in ("rounds", "batches", "loops"):
            getattr(total, name).extend(getattr(one, name))
    return total


def percent(hits: int, total: int) -> str:
    share, low, high = wilson(hits, total)
    return f"{share:.2f} [{low:.2f}, {high:.2f}]" if total else "-"


def missed(tally: Tally, chosen: t.Callable[[str], bool]) -> tuple[int, int]:
    kinds = [kind for kind in tally.faults if chosen(kind)]
    return sum(tally.missed[kind] for kind in kinds), sum(tally.faults[kind] for kind in kinds)


def row(label: str, tally: Tally) -> str:
    steady = missed(tally, lambda kind: not kind.startswith("flaky"))
    flaky = missed(tally, lambda kind: kind.startswith("flaky") and kind != "flaky 1/8")
    weak = missed(tally, lambda kind: kind == "flaky 1/8")
    short = sum(rounds <= 6 for rounds in tally.rounds) / len(tally.rounds)
    rounds = f"{quantile(tally.rounds, 0.5)} / {quantile(tally.rounds, 0.99)} / {max(tally.rounds)}"
    batches = f"{quantile(tally.batches, 0.5)} / {quantile(tally.batches, 0.9)} / {quantile(tally.batches, 0.99)}"
    cells = [label, str(tally.clusters), percent(*steady), percent(*flaky), percent(*weak),
             percent(tally.wrong_nodes, tally.clusters), percent(tally.wrong_paths, tally.clusters),
             rounds, f"{100 * short:.0f}", batches]
    return f"| {' | '.join(cells)} |"


HEAD = """| N, noise, faults | clusters | missed, steady % | missed, half of the runs, 1/2 and 1/4 % | same, 1/8 % \
| wrong node % | wrong path % | rounds p50 / p99 / max | <= 6 rounds % | steps p50 / p90 / p99 |
|---|---|---|---|---|---|---|---|---|---|"""


def kinds_table(tally: Tally) -> str:
    lines = ["| fault | faults | missed % | of those named as suspects |", "|---|---|---|---|"]
    for kind in sorted(tally.faults):
        count = tally.missed[kind]
        lines.append(f"| {kind} | {tally.faults[kind]} | {percent(count, tally.faults[kind])} | {tally.hinted[kind]} |")
    return "\n".join(lines)


def healthy_row(size: int, noise: float, tally: Tally) -> str:
    passed = tally.verdicts["PASS"]
    other = ", ".join(f"{name} {count}" for name, count in sorted(tally.verdicts.items()) if name != "PASS")
    return (f"| {size}, {100 * noise:.0f} % | {tally.clusters} | {percent(passed, tally.clusters)} | {other or '-'} "
            f"| {percent(tally.wrong_nodes + tally.wrong_paths, tally.clusters)} "
            f"| {quantile(tally.batches, 0.5)} / {quantile(tally.batches, 0.99)} |")


def main(argv: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, help="for each N and noise (default 3000, 300 for 4096)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--noises", type=float, nargs="+", default=list(NOISES))
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=list(FAULTS), help="kinds of fault to draw from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    jobs = []
    for size in options.sizes:
        clusters = options.clusters or CLUSTERS.get(size, DEFAULT_CLUSTERS)
        jobs += [((size, noise, faults), -(-clusters // 3), options.seed, tuple(options.kinds))
                 for noise in options.noises for faults in (0, 1, 2, 3)]
    with multiprocessing.Pool(options.processes) as pool:
        cells = dict(pool.imap_unordered(work, sorted(jobs, reverse=True)))
    report(cells, options.sizes, options.noises)
    return 0


def report(cells: dict[Cell, Tally], sizes: t.Sequence[int], noises: t.Sequence[float]) -> None:
    print("Share in percent with its 95 % interval (Wilson). Steps are launches one after the other, rounds and\n"
          "repeats together; rounds count from the first matching on.\n")
    print(HEAD)
    for size in sizes:
        for noise in noises:
            for faults in (1, 2, 3):
                print(row(f"{size}, {100 * noise:.0f} %, {faults}", cells[size, noise, faults]))
            print(row(f"**{size}, {100 * noise:.0f} %, all**", merged(cells[size, noise, f] for f in (1, 2, 3))))
    for noise in noises:
        total = merged(tally for (_, level, faults), tally in cells.items() if level == noise and faults)
        print(f"\nBy kind of fault, {100 * noise:.0f} % noise, all N:\n\n{kinds_table(total)}")
        named = Counter(right=total.rails_named, wrong=total.rails_wrong)
        print(f"\nRails named: {named['right']} right, {named['wrong']} wrong.")
    print("\nWithout any fault:\n\n| N, noise | clusters | PASS % | other verdicts | wrong conviction % "
          "| steps p50 / p99 |\n|---|---|---|---|---|---|")
    for size in sizes:
        for noise in noises:
            print(healthy_row(size, noise, cells[size, noise, 0]))


if __name__ == "__main__":
    sys.exit(main())
