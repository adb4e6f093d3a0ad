#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``make runner-demo`` does: site.yml and the gate through ansible-runner, as a CI job would, on the running lab.

    runner_demo.py [--inventory DIR] [--into DIR]

Checks what a CI job reads: exit code, JSON events, the gate's JUnit file, and that no artefact holds a secret.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
INVENTORY = ROOT / "inventories" / "lab"
PLAYBOOKS = ("site.yml", "playbooks/gate.yml")
# A key of the gate's run, a password hash, and what the inventory itself calls a password.
SECRETS = (re.compile(rb"PRIVATE KEY"), re.compile(rb"\$(?:6|y)\$[./A-Za-z0-9$]{20,}"),
           re.compile(rb"ansible_(?:become_)?pass(?:word)?\W{1,4}(?!\*|VALUE_SPECIFIED|\{\{)\w"))


class DemoError(Exception):
    """What a CI job would stumble over."""


def prepare(into: Path, inventory: Path) -> None:
    """ansible-runner's private data directory, with links into the checkout."""
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, target in (("project", ROOT), ("inventory", inventory)):
        link = into / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    (into / "env").mkdir(exist_ok=True)
    (into / "env" / "envvars").write_text(json.dumps({"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}), encoding="utf-8")


def run(into: Path, playbook: str) -> Path:
    """One playbook; the folder with its artefacts."""
    ident = Path(playbook).stem
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    argv = ["ansible-runner", "run", str(into), "-p", playbook, "-i", ident]
    folder = into / "artifacts" / ident
    # A second run of the same name would add its events to the first one's.
    shutil.rmtree(folder, ignore_errors=True)
    print(f"$ {' '.join(argv)}", flush=True)
    done = subprocess.run([str(BIN / argv[0]), *argv[1:]], cwd=ROOT, env=environment, check=False)
    if done.returncode != 0:
        raise DemoError(f"{playbook}: ansible-runner ended with {done.returncode}; its output stands above")
    told = [(folder / name).read_text(encoding="utf-8") for name in ("rc", "status")]
    if told != ["0", "successful"]:
        raise DemoError(f"{folder}: got rc and status {' and '.join(told)}, wanted 0 and successful")
    return folder


def events(folder: Path) -> Counter[str]:
    """How many events of each kind there are; each file must be one."""
    found: Counter[str] = Counter()
    for path in (folder / "job_events").glob("*.json"):
        event = json.loads(path.read_text(encoding="utf-8"))
        found[event["event"]] += 1
        if event["event"] == "playbook_on_stats" and (event["event_data"]["failures"] or event["event_data"]["dark"]):
            raise DemoError(f"{path}: got failed or unreachable hosts in a run that ended with 0")
    if found["playbook_on_stats"] != 1 or not found["runner_on_ok"]:
        raise DemoError(f"{folder}/job_events: got {dict(found)}, wanted results and one playbook_on_stats")
    return found


def pools(inventory: Path) -> dict[str, str]:
    """Outcome of each pool in the gate's JUnit file."""
    path = inventory / ".state" / "gate" / "gate.junit.xml"
    cases = ElementTree.parse(path).getroot().iter("testcase")
    found = {str(case.get("name")): next((child.tag for child in case), "passed") for case in cases}
    if "passed" not in found.values() or {"failure", "error"} & set(found.values()):
        raise DemoError(f"{path}: got {found}, wanted pools that passed and none that failed")
    return found


def secrets(folder: Path) -> list[str]:
    """Files that hold something that must not leave the controller."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
                  and any(pattern.search(path.read_bytes()) for pattern in SECRETS))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="site.yml and the gate through ansible-runner, on the running lab")
    parser.add_argument("--inventory", type=Path, default=INVENTORY)
    parser.add_argument("--into", type=Path, help="ansible-runner's folder; default: INVENTORY/.state/runner")
    given = parser.parse_args(arguments)
    if not (given.inventory / "hosts.yml").exists():
        print(f"runner-demo: {given.inventory}/hosts.yml is not there; start the lab first: make lab", file=sys.stderr)
        return 2
    into = given.into or given.inventory / ".state" / "runner"
    try:
        prepare(into, given.inventory.resolve())
        for playbook in PLAYBOOKS:
            folder = run(into, playbook)
            counted = events(folder)
            print(f"{playbook}: rc 0, {sum(counted.values())} JSON events, {counted['runner_on_ok']} results ok")
        for name, outcome in pools(given.inventory).items():
            print(f"pool {name}: {outcome}")
        left = secrets(into / "artifacts")
        if left:
            raise DemoError(f"got secrets in {', '.join(left)}")
    except (DemoError, OSError, ValueError, ElementTree.ParseError) as error:
        print(f"runner-demo: {error}", file=sys.stderr)
        return 1
    print(f"no secret in any artefact; artefacts: {into / 'artifacts'}; "
          f"JUnit: {given.inventory}/.state/gate/gate.junit.xml")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
