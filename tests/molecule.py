# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the molecule scenarios of the roles that have changed, one after the other.

    python -m tests.molecule             against origin/main (or the last commit, when there is no other)
    python -m tests.molecule --all       all of them
    python -m tests.molecule NAME ...    these

A scenario has changed with its own files, its roles, and the plugins that these use, also through others. With --box
none begins after so many seconds; those whose own role changed come first, and what is left is named.

Molecule itself calls a run over no hosts a success; here every step must have met every host of the fleet.
"""
from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
# Molecule finds it by itself, but only in a git checkout.
CONFIG = ".config/molecule/config.yml"
# molecule slurm: 200 s on two cores.
LIMIT_SECONDS = 400.0
GRACE_SECONDS = 10.0
SHOWN_LINES = 80
# A change in one of these is a change of every scenario.
COMMON = (
    "molecule/shared/", ".config/molecule/", "lab/", "inventories/lab/group_vars/", "ansible.cfg", "requirements.txt",
    "tests/molecule.py", "tests/snapshot.py",
)
OURS = re.compile(r"aidc\.gpu_cluster\.(\w+)")
# The first name of an import; that of module_utils by a relative one.
IMPORTS = re.compile(r"from (?:ansible_collections\.aidc\.gpu_cluster\.plugins\.(\w+)(?:\.| import )|\.\.)(\w+)")
# How many of a step's playbooks must have met every host: verify, forget_facts.yml, verify again.
MET = {"check": 1, "converge": 1, "idempotence": 1, "verify": 3}
STEP = re.compile(r"\[(?P<scenario>\w+) > (?P<step>\w+)\] Executing")
RECAP = re.compile(r"^(?P<host>\S+) +: ok=(?P<ok>\d+) +changed=\d+ ")
# One action may be several playbooks, so successes may outnumber actions.
ACTIONS = re.compile(r"^\w+ +: actions=\d+ +successful=\d+ +"
                     r"disabled=(\d+) +skipped=(\d+) +missing=(\d+) +failed=(\d+)", re.M)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Scenario:
    """One folder of molecule/: the role of the same name on the hosts of its fleet file."""

    name: str
    folder: Path

    @property
    def prefix(self) -> str:
        """As in molecule/shared/vars/scenario.yml."""
        return "".join(word[:1] for word in self.name.split("_"))

    @property
    def lab(self) -> str:
        return f"mol{self.prefix}"

    def hosts(self) -> list[str]:
        file = self.folder / "fleet.yml"
        data = read(file) if file.exists() else {}
        return [host["name"] for host in data.get("hosts") or []]

    def roles(self) -> set[str]:
        """The roles that its playbooks name, and its own."""
        text = "".join(file.read_text(encoding="utf-8") for file in sorted(self.folder.glob("*.yml")))
        return {self.name, *OURS.findall(text)}

    def own(self) -> tuple[str, ...]:
        return (f"molecule/{self.name}/", f"roles/{self.name}/")

    def folders(self, root: Path) -> tuple[str, ...]:
        """A change of one of these, or below it, is a change of the scenario."""
        return (*self.own(), *(f"roles/{role}/" for role in sorted(self.roles())), *sorted(plugins(root, self.roles())))


def plugins(root: Path, roles: set[str]) -> set[str]:
    """Files and folders below plugins/ that these roles use, also through others."""
    tasks = [file for role in roles for file in sorted((root / "roles" / role).rglob("*.yml"))]
    names = {name for file in tasks for name in OURS.findall(file.read_text(encoding="utf-8"))}
    waiting = {file for name in names for file in (root / "plugins").glob(f"*/{name}.py")}
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        found.add(path)
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for kind, name in (pair for file in files for pair in IMPORTS.findall(file.read_text(encoding="utf-8"))):
            folder = root / "plugins" / (kind or "module_utils") / name
            target = folder if folder.is_dir() else folder.with_suffix(".py")
            # `from .. import x`, or a name that is no file of ours.
            waiting |= {target} - found if target.exists() else set()
    return {f"{path.relative_to(root)}{'/' if path.is_dir() else ''}" for path in found}


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8")) or {}


def scenarios(root: Path) -> list[Scenario]:
    """Every folder counts, whatever is in it: one that molecule would pass over is an error."""
    return [Scenario(folder.name, folder) for folder in sorted((root / "molecule").iterdir())
            if folder.is_dir() and folder.name != "shared"]


def problems(root: Path) -> list[str]:
    """What is wrong with the set of scenarios, before any is run."""
    roles = {folder.name for folder in (root / "roles").iterdir() if folder.is_dir()}
    found, known = [], scenarios(root)
    elsewhere = read(root / "molecule" / "covered_elsewhere.yml")
    for scenario in known:
        found += scenario_problems(scenario, roles)
    names = {scenario.name for scenario in known}
    for role in sorted(roles - names - set(elsewhere)):
        found.append(f"roles/{role}: got no scenario, wanted molecule/{role} (molecule/README.md)")
    for role, entry in elsewhere.items():
        if role not in roles or role in names:
            found.append(f"molecule/covered_elsewhere.yml: {role}: got a role that has a scenario, or no such role")
        elif not entry.get("reason") or not (root / str(entry.get("test"))).is_file():
            found.append(f"molecule/covered_elsewhere.yml: {role}: got {entry}, wanted a reason and an existing test")
    for prefix in sorted({scenario.prefix for scenario in known}):
        same = [scenario.name for scenario in known if scenario.prefix == prefix]
        if len(same) > 1:
            found.append(f"molecule: {' and '.join(same)} have the same prefix {prefix}; their labs would meet")
    return found


def scenario_problems(scenario: Scenario, roles: set[str]) -> list[str]:
    where, found = f"molecule/{scenario.name}", []
    if scenario.name not in roles:
        found.append(f"{where}: got no role roles/{scenario.name}, wanted the scenario to have a role's name")
    missing = [name for name in ("molecule.yml", "fleet.yml", "converge.yml", "verify.yml")
               if not (scenario.folder / name).is_file()]
    if missing:
        found.append(f"{where}: got no {', '.join(missing)}")
    elif "../shared/hosts.yml" not in (scenario.folder / "verify.yml").read_text(encoding="utf-8"):
        found.append(f"{where}/verify.yml: got no import of ../shared/hosts.yml, wanted it first")
    hosts = scenario.hosts()
    strangers = [host for host in hosts if not host.startswith(scenario.prefix)]
    if not hosts or strangers:
        found.append(f"{where}/fleet.yml: got hosts {hosts}, wanted at least one, all called {scenario.prefix}...")
    return found


def git(root: Path, *argv: str) -> list[str]:
    done = subprocess.run(["git", *argv], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def base_commit(root: Path) -> str | None:
    """What to compare with: where this branch left origin/main; on main itself, or without it, the last commit."""
    head, base = git(root, "rev-parse", "HEAD"), git(root, "merge-base", "origin/main", "HEAD")
    if not base or base == head:
        base = git(root, "rev-parse", "--verify", "-q", "HEAD~1")
    return base[0] if base else None


def changed_files(root: Path) -> list[str] | None:
    """Files that differ from the base, those that are not committed included; None when there is no base."""
    base = base_commit(root)
    if base is None:
        return None
    return git(root, "diff", "--name-only", base) + git(root, "ls-files", "--others", "--exclude-standard")


def affected(root: Path, known: list[Scenario], files: list[str] | None) -> list[Scenario]:
    """Those whose own role or folder changed come first."""
    if files is None:
        return known
    everything = any(file.startswith(COMMON) for file in files)
    found = [scenario for scenario in known
             if everything or any(file.startswith(scenario.folders(root)) for file in files)]
    return sorted(found, key=lambda scenario: not any(file.startswith(scenario.own()) for file in files))


def judge(scenario: str, hosts: list[str], output: str) -> list[str]:
    """Why the output of ``molecule test`` is no proof; nothing when it is one."""
    met, step = dict.fromkeys(MET, 0), ""
    recaps: list[re.Match[str]] = []
    # A playbook's recap: lines after PLAY RECAP; a host that is not in it was not met.
    for line in [*COLOUR.sub("", output).splitlines(), ""]:
        if at := STEP.search(line):
            step = at["step"] if at["scenario"] == scenario else ""
        elif line.startswith("PLAY RECAP"):
            recaps = []
        elif recap := RECAP.match(line):
            recaps.append(recap)
        elif recaps:
            good = {recap["host"] for recap in recaps if recap["ok"] != "0"}
            met[step] = met.get(step, 0) + int(bool(hosts) and good >= set(hosts))
            recaps = []
    found = [f"{name}: got {met[name]} playbooks that ran on all of {hosts}, wanted {least}"
             for name, least in MET.items() if met[name] < least]
    ended = ACTIONS.search(COLOUR.sub("", output))
    if ended is None or set(ended.groups()) != {"0"}:
        found.append(f"molecule's summary: got {ended[0] if ended else 'none'}, wanted successful actions alone")
    return found


def environment(root: Path, ephemeral: str) -> dict[str, str]:
    """Molecule's; what the caller's shell says of Ansible does not count."""
    others = ("ANSIBLE_", "MOLECULE_", "PYTHON")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(others)},
        "PATH": f"{root / '.venv' / 'bin'}:{os.environ['PATH']}", "MOLECULE_EPHEMERAL_DIRECTORY": ephemeral,
        "NO_COLOR": "1", "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8",
    }


def run_molecule(scenario: Scenario, root: Path, limit: float) -> tuple[list[str], str]:
    """``molecule test`` under a time limit: what is wrong, and the output. No lab is left, also after a kill."""
    binaries = root / ".venv" / "bin"
    argv = [str(binaries / "molecule"), "-c", CONFIG, "test", "--no-command-borders", "-s", scenario.name]
    # The output goes to a file: after a kill, a worker of Ansible (in a session of its own) may hold a pipe open.
    with tempfile.TemporaryDirectory(prefix=f"aidc-{scenario.lab}-") as folder, \
            open(f"{folder}/output", "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(argv, cwd=root, env=environment(root, f"{folder}/ephemeral"), start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            code = process.wait(timeout=limit)
            bad = [f"exit status {code}"] if code else []
        except subprocess.TimeoutExpired:
            bad = [f"did not end in {limit:.0f} s"]
        finally:
            end(process)
            subprocess.run([str(binaries / "python"), "-m", "lab", "--name", scenario.lab, "down"], cwd=root,
                           check=False, stdout=subprocess.DEVNULL)
        log.seek(0)
        output = log.read()
    return bad or judge(scenario.name, scenario.hosts(), output), output


def end(process: subprocess.Popen[Any]) -> None:
    """TERM first: ansible-playbook then ends its workers, which a signal to the group does not reach."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=GRACE_SECONDS)


def run(scenario: Scenario, root: Path, limit: float) -> bool:
    """One scenario; prints one line, and the end of the output when it failed."""
    start, hosts = time.monotonic(), len(scenario.hosts())
    bad, output = run_molecule(scenario, root, limit)
    if bad:
        print("\n".join(output.splitlines()[-SHOWN_LINES:]))
    verdict = f"FAILED: {'; '.join(bad)}" if bad else "passed"
    print(f"molecule {scenario.name}: {verdict}: {hosts} hosts, {time.monotonic() - start:.0f} s", flush=True)
    return not bad


def choose(root: Path, names: list[str], everything: bool) -> list[Scenario]:
    known = scenarios(root)
    if names:
        unknown = sorted(set(names) - {scenario.name for scenario in known})
        if unknown:
            wanted = ", ".join(scenario.name for scenario in known)
            sys.exit(f"molecule: got {', '.join(unknown)}, wanted some of {wanted}")
        return [scenario for scenario in known if scenario.name in names]
    return known if everything else affected(root, known, changed_files(root))


def main(argv: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="tests.molecule", description="Molecule scenarios of the roles that changed.")
    parser.add_argument("--all", action="store_true", help="all scenarios")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds for each (default: %(default)s)")
    parser.add_argument("--box", type=float, default=math.inf, metavar="S", help="begin none after so many seconds")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these scenarios")
    arguments = parser.parse_args(argv)
    if bad := problems(root):
        print("\n".join(f"molecule: {text}" for text in bad))
        return 1
    start, known = time.monotonic(), scenarios(root)
    chosen = choose(root, arguments.names, arguments.all)
    if not known:
        print("molecule: got no scenario at all, wanted one for each role")
        return 1
    failed, left = [], []
    for scenario in chosen:
        if time.monotonic() - start > arguments.box:
            left.append(scenario.name)
        elif not run(scenario, root, arguments.limit):
            failed.append(scenario.name)
    if left:
        print(f"molecule: NOT RUN, as {arguments.box:.0f} s were over: {', '.join(left)} (make full runs all)")
    why = "" if chosen else f" (no role has changed since {(base_commit(root) or '')[:12]}; --all runs all)"
    counts = (f"{len(chosen) - len(failed) - len(left)} passed, {len(failed)} failed, {len(left)} not run, "
              f"{len(known) - len(chosen)} not chosen")
    print(f"molecule: {counts} of {len(known)} scenarios{why}, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
