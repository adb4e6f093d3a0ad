# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run detectors over hosts, one play for each, and read what they found. Judging is in judge.py."""
from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.faults.rows import ROLES
from tests.lab_plugin import BIN, ROOT

SECONDS = 240
_INFO = {
    "name": "mlx5_info", "become": True, "aidc.gpu_cluster.mlx5_info": {
        "rails": "{{ mlx5_port_rails | map(attribute='pci') | list }}",
        "class": {"pcie_speed_gts": "{{ node_class_rail_pcie_speed_gts }}",
                  "pcie_width": "{{ node_class_rail_pcie_width }}"},
    }}
_PATHS = {"name": "path_probe", "become": True, "aidc.gpu_cluster.path_probe": {"targets": "{{ faults_targets }}"}}
_BOOT_TOOL = {"name": "boot tool", "become": True, "ansible.builtin.command": {
    "argv": ["/usr/libexec/aidc/aidc-fabric.pyz", "--check"]}, "changed_when": False}
TASKS: dict[str, dict[str, Any]] = {"mlx5_info": _INFO, "path_probe": _PATHS, "boot tool": _BOOT_TOOL}
# Playbooks of the collection that look at the whole fleet.
PLAYBOOKS = {"audit": "playbooks/audit.yml", "fabric": "playbooks/fabric.yml"}
_LISTS = ("findings", "problems", "pending", "moved", "deferred")


@dataclass(frozen=True)
class Finding:
    """``rail`` if it is said as a number. A note is worth knowing and wrong for nobody."""

    host: str
    run: str
    text: str
    rule: str = ""
    rail: int | None = None
    note: bool = False


@dataclass
class Round:
    """What is asked in one run: detectors by host, and the hosts' variables."""

    runs: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)

    def ask(self, host: str, run: str) -> None:
        hosts = self.runs.setdefault(run, [])
        if host not in hosts:
            hosts.append(host)


def play(run: str, hosts: Iterable[str]) -> dict[str, Any]:
    """One play: whatever a host fails with, the next play meets it too."""
    role = run.removeprefix("apply ")
    task: dict[str, Any] = {"name": run, **TASKS[run]} if run in TASKS else {
        "name": run, "ansible.builtin.import_role": {"name": f"aidc.gpu_cluster.{role}"}}
    variables = {f"{role}_mode": "apply" if run.startswith("apply ") else "verify"} if role in ROLES else {}
    return {"name": run, "hosts": ":".join(hosts), "gather_facts": False, "vars": variables,
            "tasks": [{"name": run, "block": [task],
                       "rescue": [{"name": "found", "ansible.builtin.debug": {"msg": "found"}}]}]}


def plays(asked: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Those that change nothing come first."""
    order = sorted((run for run in asked if run not in PLAYBOOKS), key=lambda run: (run.startswith("apply "), run))
    return [play(run, asked[run]) for run in order]


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and {"object", "got", "wanted"} <= set(item):
        return f"{item['object']}: got {item['got']}, wanted {item['wanted']} ({item.get('hint', '')})"
    return json.dumps(item, sort_keys=True)


def _of_result(result: Mapping[str, Any], verifies: bool) -> list[str]:
    if result.get("skipped"):
        return []
    found = [_text(item) for key in _LISTS for item in result.get(key) or () if isinstance(result.get(key), list)]
    if result.get("failed"):
        found.append(str(result.get("msg", "")) + " ".join(str(result.get(key, "")) for key in ("stdout", "stderr")))
    if verifies:
        found += [f"would run: {' '.join(map(str, command))}" for command in result.get("commands") or ()]
        found += [f"because: {step.get('why')}" for step in result.get("steps") or () if isinstance(step, dict)]
    else:
        found += [f"ran: {' '.join(map(str, command))}" for command in result.get("commands") or ()]
    found += [f"{path['interface']} to {path['peer']} rail {path['rail']}: {path['largest_bytes']} bytes pass, wanted "
              f"{path['size_bytes']}" for path in result.get("paths") or () if not path.get("passed")]
    return found


def read(data: Mapping[str, Any], failures: bool = False) -> list[Finding]:
    """What the callback ansible.posix.json printed, as findings by host and detector (the plays' names)."""
    found: dict[Finding, None] = {}
    for entry in data["plays"]:
        run = entry["play"]["name"]
        for task in entry["tasks"]:
            for host, result in task["hosts"].items():
                for text in _of_result(result, not run.startswith("apply ")) if result.get("failed") or not failures \
                        else ():
                    found[Finding(host, run, text)] = None
    return list(found)


def read_audit(data: Mapping[str, Any]) -> list[Finding]:
    """Of the task fabric_audit: a finding for each host that one names."""
    found: dict[Finding, None] = {}
    results = [result for entry in data["plays"] for task in entry["tasks"] for result in task["hosts"].values()
               if str(result.get("action")).endswith("fabric_audit")]
    if not any("findings" in result for result in results):
        said = "; ".join(str(result.get("msg")) for result in results if result.get("failed"))
        raise RuntimeError(f"the audit has no verdict: {said or 'it did not run'}")
    for item in (item for result in results for item in result.get("findings") or ()):
        text = f"{item['id']}: got {item['got']}, wanted {item['wanted']}; {'; '.join(item['evidence'])}"
        for host in item["hosts"]:
            found[Finding(host, "audit", text, item["id"], item["rail"], item["severity"] == "note")] = None
    return list(found)


class Ansible:
    """Runs of ansible-playbook against the lab's inventory, each with a copy of the fleet record of the clean lab."""

    def __init__(self, inventory: Path, folder: Path) -> None:
        self.inventory, self.folder = inventory, folder
        self.record = inventory / ".state"
        self.numbers = itertools.count(1)

    def run(self, playbook: str, variables: Mapping[str, Mapping[str, Any]], record: Path | None,
            *argv: str) -> tuple[int, dict[str, Any], str]:
        """Exit status, what the JSON callback printed, and all text."""
        more: list[str] = []
        if variables:
            file = self.folder / f"vars-{next(self.numbers)}.yml"
            file.write_text(json.dumps({"all": {"hosts": {host: dict(given) for host, given in variables.items()}}}),
                            encoding="utf-8")
            more = ["-i", str(file)]
        if record is not None:
            argv = (*argv, "-e", f"aidc_state_dir={record}")
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                       "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        environment.pop("PYTHONPATH", None)
        program = [str(BIN / "ansible-playbook"), "-i", str(self.inventory), *more, playbook, *argv]
        done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
                              timeout=SECONDS, stdin=subprocess.DEVNULL)
        try:
            data, _end = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{"):])
        except ValueError:
            data = {"plays": []}
        return done.returncode, data, done.stdout + done.stderr

    def copy_of_record(self) -> Path:
        target = self.folder / f"record-{next(self.numbers)}"
        shutil.copytree(self.record, target)
        return target

    def detect(self, asked: Round) -> list[Finding]:
        record, found = self.copy_of_record(), []
        written = plays(asked.runs)
        if written:
            file = self.folder / f"round-{next(self.numbers)}.yml"
            file.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
            _code, data, text = self.run(str(file), asked.variables, record)
            missed = {entry["name"] for entry in written} - {
                entry["play"]["name"] for entry in data["plays"] if any(task["hosts"] for task in entry["tasks"])}
            if missed:
                raise RuntimeError(f"detectors that met no host: {', '.join(sorted(missed))}\n{text[-3000:]}")
            found += read(data)
        for run in asked.runs:
            if run in PLAYBOOKS:
                _code, data, text = self.run(PLAYBOOKS[run], asked.variables, record)
                if not data["plays"]:
                    raise RuntimeError(f"{run}: no output\n{text[-3000:]}")
                found += read_audit(data) if run == "audit" else [
                    Finding(finding.host, run, finding.text) for finding in read(data, failures=True)]
        shutil.rmtree(record)
        return found

    def apply(self, host: str, roles: list[str], variables: Mapping[str, Any]) -> bool:
        """Apply roles to one host; the fleet record of the clean lab stays as it is."""
        record = self.copy_of_record()
        file = self.folder / f"roles-{next(self.numbers)}-{host}.yml"
        written = [play(f"apply {role}", [host]) for role in roles]
        file.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
        _code, data, _text = self.run(str(file), {host: variables}, record)
        shutil.rmtree(record)
        results = [result for entry in data["plays"] for task in entry["tasks"] for result in task["hosts"].values()]
        return bool(results) and not any(result.get("failed") or result.get("unreachable") for result in results)
