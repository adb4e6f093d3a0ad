# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the runner of molecule scenarios, with a molecule that is a shell script."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import molecule
from tests.molecule import ROOT, Scenario, judge

HOSTS = ["mpgb1", "mpl40s1"]
STEPS = ["destroy", "create", "prepare", "check", "verify", "converge", "idempotence", "verify", "side_effect",
         "verify"]
GOOD = "skipped=0  missing=0  failed=0"
FLEET = "hosts: [{name: mpgb1, class: gb200}, {name: mpl40s1, class: l40s}]\n"
IMPORT = "- ansible.builtin.import_playbook: ../shared/hosts.yml\n"


def recap(*hosts: str, ok: int = 3) -> str:
    lines = "".join(f"{host:26} : ok={ok}    changed=0    unreachable=0    failed=0    skipped=0\n" for host in hosts)
    return f"PLAY RECAP *********\n{lines}\n"


def output(without: str = "", hosts: tuple[str, ...] = tuple(HOSTS), summary: str = GOOD) -> str:
    """What `molecule test` prints, in short; ``without`` names a step whose playbooks meet only the controller."""
    text, verify = "", 0
    for step in STEPS:
        text += f"INFO     [mlx5_port > {step}] Executing\n\nPLAY [x] ****\n\nTASK [y] ***\nok: [z]\n\n"
        verify += step == "verify"
        untouched = step == "verify" and verify == 1
        local = step in ("destroy", "create", without) or untouched
        text += recap("localhost", *(() if local else hosts))
        if verify == 3 and without != "verify":
            text += recap("localhost", *hosts)
        text += f"INFO     [mlx5_port > {step}] Executed: Successful\n"
    return f"{text}\nSCENARIO RECAP\nmlx5_port      : actions=11  successful=12  disabled=0  {summary}\n"


def test_a_good_run() -> None:
    assert judge("mlx5_port", HOSTS, output()) == []
    assert judge("mlx5_port", HOSTS, output().replace("mpgb1", "\x1b[0;32mmpgb1\x1b[0m")) == []


@pytest.mark.parametrize("step", molecule.MET)
def test_a_step_without_hosts_is_no_proof(step: str) -> None:
    found = judge("mlx5_port", HOSTS, output(without=step))
    assert [text.split(":")[0] for text in found] == [step]
    renamed = output().replace(f"> {step}]", "> other]")
    assert judge("mlx5_port", HOSTS, renamed)[0].startswith(f"{step}: got 0 playbooks")


def test_hosts_that_were_not_met() -> None:
    assert len(judge("mlx5_port", HOSTS, output(hosts=("mpgb1",)))) == len(molecule.MET)
    assert len(judge("mlx5_port", HOSTS, output(hosts=()))) == len(molecule.MET)
    # No hosts wanted, none met: still no proof.
    assert len(judge("mlx5_port", [], output(hosts=()))) == len(molecule.MET)
    assert len(judge("mlx5_port", HOSTS, output().replace("ok=3", "ok=0"))) == len(molecule.MET)
    assert len(judge("mlx5_port", HOSTS, "")) == len(molecule.MET) + 1


@pytest.mark.parametrize("word", ["skipped", "missing", "failed"])
def test_the_summary_has_other_than_successful_actions(word: str) -> None:
    summary = GOOD.replace(f"{word}=0", f"{word}=1")
    assert "molecule's summary" in judge("mlx5_port", HOSTS, output(summary=summary))[0]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A collection with one role, one scenario, and a molecule that prints ``said``."""
    scenario = tmp_path / "molecule" / "mlx5_port"
    scenario.mkdir(parents=True)
    for folder in ("roles/mlx5_port", ".venv/bin", "molecule/shared"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "molecule" / "covered_elsewhere.yml").write_text("{}\n", encoding="utf-8")
    (scenario / "fleet.yml").write_text(FLEET, encoding="utf-8")
    (scenario / "verify.yml").write_text(IMPORT, encoding="utf-8")
    for name in ("molecule.yml", "converge.yml"):
        (scenario / name).touch()
    (tmp_path / "said").write_text(output(), encoding="utf-8")
    program(tmp_path, "molecule", f"echo \"$*\" > {tmp_path}/arguments; cat {tmp_path}/said")
    program(tmp_path, "python", f"echo \"$*\" >> {tmp_path}/down")
    return tmp_path


def program(tree: Path, name: str, text: str) -> None:
    file = tree / ".venv" / "bin" / name
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def test_the_runner_passes_a_good_run(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert molecule.main(["--all"], tree) == 0
    said = capsys.readouterr().out
    assert "molecule mlx5_port: passed: 2 hosts, " in said
    assert "molecule: 1 passed, 0 failed, 0 not run, 0 not chosen of 1 scenarios, " in said
    assert (tree / "arguments").read_text(encoding="utf-8") == \
        "-c .config/molecule/config.yml test --no-command-borders -s mlx5_port\n"
    assert (tree / "down").read_text(encoding="utf-8") == "-m lab --name molmp down\n"


def test_molecule_succeeds_on_no_hosts_and_the_runner_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "said").write_text(output(hosts=()), encoding="utf-8")
    assert molecule.main(["--all"], tree) == 1
    assert "converge: got 0 playbooks that ran on all of ['mpgb1', 'mpl40s1'], wanted 1" in capsys.readouterr().out


def test_a_box_of_time_begins_no_other_and_says_what_is_left(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(tree / "molecule" / "mlx5_port", tree / "molecule" / "roce")
    (tree / "molecule/roce/fleet.yml").write_text(FLEET.replace("mp", "r"), encoding="utf-8")
    (tree / "roles/roce").mkdir()
    program(tree, "molecule", f"sleep 0.3; cat {tree}/said")
    assert molecule.main(["--all", "--box", "0.2"], tree) == 0
    said = capsys.readouterr().out
    assert "molecule: NOT RUN, as 0 s were over: roce (make full runs all)" in said
    assert "molecule: 1 passed, 0 failed, 1 not run, 0 not chosen of 2 scenarios, " in said


def test_a_run_that_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tree, "molecule", "echo the reason; exit 3")
    assert molecule.main(["mlx5_port"], tree) == 1
    said = capsys.readouterr().out
    assert "the reason" in said and "FAILED: exit status 3" in said


@pytest.mark.parametrize("text", [
    "sleep 300", "trap '' TERM; sleep 300 & wait; sleep 300", "setsid sleep 5; sleep 300",
])
def test_a_run_that_hangs_is_killed_and_its_lab_removed(
        tree: Path, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(molecule, "GRACE_SECONDS", 1.0)
    program(tree, "molecule", text)
    start = time.monotonic()
    assert molecule.main(["--limit", "1", "mlx5_port"], tree) == 1
    assert time.monotonic() - start < 4
    assert "FAILED: did not end in 1 s" in capsys.readouterr().out
    assert "--name molmp down" in (tree / "down").read_text(encoding="utf-8")


@pytest.mark.parametrize(("file", "text", "problem"), [
    ("molecule/mlx5_port/fleet.yml", "hosts: []\n", "got hosts [], wanted at least one"),
    ("molecule/mlx5_port/fleet.yml", "hosts: [{name: one}]\n", "got hosts ['one'], wanted at least one, all called mp"),
    ("molecule/mlx5_port/verify.yml", "", "got no import of ../shared/hosts.yml"),
    ("roles/other/tasks/main.yml", "", "roles/other: got no scenario"),
    ("molecule/other/molecule.yml", "", "molecule/other: got no role roles/other"),
    ("molecule/other/molecule.yml", "", "molecule/other: got no fleet.yml, converge.yml, verify.yml"),
    ("molecule/mlx5_pport/molecule.yml", "", "mlx5_port and mlx5_pport have the same prefix mp"),
    ("molecule/covered_elsewhere.yml", "mlx5_port: {test: a, reason: b}\n", "got a role that has a scenario"),
    ("molecule/covered_elsewhere.yml", "gone: {test: a, reason: b}\n", "gone: got a role that has a scenario, or no"),
])
def test_what_is_wrong_before_any_run(
        tree: Path, file: str, text: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(text, encoding="utf-8")
    assert molecule.main([], tree) == 1
    assert problem in capsys.readouterr().out
    assert not (tree / "arguments").exists()


def test_a_role_that_is_covered_elsewhere(tree: Path) -> None:
    (tree / "roles" / "other").mkdir()
    file = tree / "molecule" / "covered_elsewhere.yml"
    file.write_text("other: {test: tests/gone.py, reason: b}\n", encoding="utf-8")
    assert ["wanted a reason and an existing test" in text for text in molecule.problems(tree)] == [True]
    file.write_text("other: {test: said, reason: b}\n", encoding="utf-8")
    assert molecule.problems(tree) == []


def test_no_scenario_at_all(tree: Path) -> None:
    shutil.rmtree(tree / "molecule" / "mlx5_port")
    shutil.rmtree(tree / "roles" / "mlx5_port")
    assert molecule.main([], tree) == 1


def test_this_collection_is_sound() -> None:
    assert molecule.problems(ROOT) == []
    assert "mlx5_port" in [scenario.name for scenario in molecule.scenarios(ROOT)]


@pytest.mark.parametrize(("files", "chosen"), [
    (None, ["mlx5_port", "roce"]),
    (["README.md", "roles/nccl_gate/tasks/main.yml", "tests/unit/test_x.py"], []),
    (["roles/mlx5_port/tasks/main.yml"], ["mlx5_port"]),
    (["molecule/roce/verify.yml"], ["roce"]),
    (["roles/package_sources/tasks/main.yml"], ["roce"]),
    (["molecule/shared/create.yml"], ["mlx5_port", "roce"]),
    (["plugins/modules/mlx5_info.py"], ["roce"]),
    (["plugins/action/mlx5_info.py"], ["roce"]),
    (["plugins/module_utils/_host/files.py", "roles/mlx5_port/README.md"], ["mlx5_port", "roce"]),
    (["plugins/module_utils/_gpu/model.py", "plugins/plugin_utils/other.py"], []),
    (["plugins/plugin_utils/recording.py"], ["roce"]),
    (["plugins/module_utils/_net/parse.py"], ["roce"]),
    (["lab/boot.py", "roles/mlx5_port/tasks/main.yml"], ["mlx5_port", "roce"]),
    (["lab/boot.py", "molecule/roce/verify.yml"], ["roce", "mlx5_port"]),
    (["lab/boot.py"], ["mlx5_port", "roce"]),
])
def test_which_scenarios_have_changed(tree: Path, files: list[str] | None, chosen: list[str]) -> None:
    (tree / "molecule" / "roce").mkdir()
    converge = tree / "molecule" / "roce" / "converge.yml"
    converge.write_text("- role: aidc.gpu_cluster.package_sources\n", encoding="utf-8")
    ours = "from ansible_collections.aidc.gpu_cluster.plugins"
    for name, text in {
            "roles/package_sources/tasks/main.yml": "- aidc.gpu_cluster.mlx5_info:\n",
            "plugins/modules/mlx5_info.py": f"{ours}.module_utils._mlx5.io import read\n",
            "plugins/action/mlx5_info.py": f"{ours}.plugin_utils import recording\n",
            "plugins/plugin_utils/recording.py": "", "plugins/plugin_utils/other.py": "",
            "plugins/module_utils/_mlx5/io.py": "from .._host.files import write\nfrom .. import gone\n",
            "plugins/module_utils/_host/errors.py": "from .._net import parse\n",
            "plugins/module_utils/_net/parse.py": "", "plugins/module_utils/_host/files.py": "",
            "plugins/module_utils/_gpu/model.py": ""}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    assert [scenario.name for scenario in molecule.affected(tree, molecule.scenarios(tree), files)] == chosen


def test_every_scenario_of_this_collection_uses_plugins_that_are_there() -> None:
    for scenario in molecule.scenarios(ROOT):
        used = [name for name in scenario.folders(ROOT) if name.startswith("plugins/")]
        assert [name for name in used if not (ROOT / name).exists()] == []
    slurm = next(scenario for scenario in molecule.scenarios(ROOT) if scenario.name == "slurm")
    assert {"plugins/module_utils/_slurm/", "plugins/modules/slurm_config.py"} <= set(slurm.folders(ROOT))


def git(tree: Path, *argv: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *argv], cwd=tree, check=True,
                   capture_output=True)


def test_what_changes_are_compared_with(tree: Path) -> None:
    git(tree, "init", "-q", "-b", "main")
    assert molecule.changed_files(tree) is None
    for name in ("one", "two", "three"):
        (tree / name).touch()
        git(tree, "add", name)
        git(tree, "commit", "-q", "-m", name)
    (tree / ".gitignore").write_text("*\n", encoding="utf-8")
    assert molecule.changed_files(tree) == ["three"]
    git(tree, "update-ref", "refs/remotes/origin/main", "HEAD~2")
    assert molecule.changed_files(tree) == ["three", "two"]
    (tree / ".gitignore").write_text("*\n!new\n", encoding="utf-8")
    (tree / "new").touch()
    (tree / "one").write_text("x", encoding="utf-8")
    assert molecule.changed_files(tree) == ["one", "three", "two", "new"]
    # On main itself: the last commit.
    git(tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert molecule.changed_files(tree) == ["one", "three", "new"]


@pytest.mark.parametrize(("inventory", "code", "text"), [
    ("all: {children: {gb200: {hosts: {mpgb1: }}, l40s: {hosts: {mpl40s1: }}}}", 0, "ok=1"),
    ("all: {children: {gb200: {hosts: {}}}}", 2, "got hosts [] "),
    ("all: {children: {gb200: {hosts: {mpgb1: }}}}", 2, "got hosts ['mpgb1'] "),
    ("all: {hosts: {mpl40s1: }, children: {gb200: {hosts: {mpgb1: }}}}", 2, "(in no group: ['mpl40s1'])"),
    ("no inventory", 1, "Completely failed to parse inventory source"),
])
def test_the_check_that_every_verify_begins_with(tmp_path: Path, inventory: str, code: int, text: str) -> None:
    (tmp_path / "hosts.yml").write_text(f"{inventory}\n", encoding="utf-8")
    folder = ROOT / "molecule" / "mlx5_port"
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "MOLECULE_SCENARIO_NAME": "mlx5_port",
                   "MOLECULE_SCENARIO_DIRECTORY": str(folder), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run([str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(tmp_path / "hosts.yml"),
                           str(folder.parent / "shared" / "hosts.yml")], cwd=ROOT, env=environment, check=False,
                          capture_output=True, text=True, timeout=60)
    said = " ".join((done.stdout + done.stderr).split())
    assert (done.returncode, text in said) == (code, True), said


def test_prefix_and_lab() -> None:
    scenario = Scenario("mlx5_port", ROOT / "molecule" / "mlx5_port")
    assert (scenario.prefix, scenario.lab, scenario.hosts()) == ("mp", "molmp", HOSTS)
    assert "mlx5_port" in scenario.roles()
