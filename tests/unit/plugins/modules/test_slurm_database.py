# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against a database that is a few variables; the real one is in tests/integration/test_slurm.py."""
from __future__ import annotations

import getpass
import json
import re
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_database

FILE = "/etc/slurm/slurmdbd-secret.conf"
STEPS = [["write", FILE], ["create", "database", "slurm_acct_db"], ["create", "user", "slurm@localhost"]]


class FakeDatabase:
    """MariaDB's client: the statements of the module, and nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = self.user = self.granted = self.deaf = False
        self.password = ""
        self.state: t.Any = "ok"
        self.argvs: list[tuple[str, ...]] = []

    def machine(self) -> Machine:
        return Machine(root=self.root, run=self)

    def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        self.argvs.append(tuple(argv))
        if self.state != "ok":
            return Result(tuple(argv), self.state, 1, "", "ERROR 2002")
        query = argv[list(argv).index("--execute") + 1]
        return Result(tuple(argv), "ok", 0, self.answer(query, argv))

    def answer(self, query: str, argv: t.Sequence[str]) -> str:
        if query == "SELECT 1":
            options = Path(argv[1].split("=", 1)[1])
            assert options.stat().st_mode & 0o077 == 0
            return "1\n" if f"password={self.password}\n" in options.read_text() else ""
        if query.startswith("source "):
            return self.run_file(Path(query.split()[1]).read_text())
        if query.startswith("SHOW DATABASES"):
            return "slurm_acct_db\n" if self.database else ""
        if query.startswith("SHOW GRANTS"):
            return "GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO `slurm`@`localhost`\n" if self.granted else ""
        return f"{int(self.user)}\n"

    def run_file(self, text: str) -> str:
        if self.deaf:
            return ""
        self.database = self.database or "CREATE DATABASE" in text
        if found := re.search(r"ALTER USER .* IDENTIFIED BY '(.*)'", text):
            self.user, self.password, self.granted = True, found[1], "GRANT ALL" in text
        return ""


@pytest.fixture
def fake(tmp_path: Path) -> FakeDatabase:
    (tmp_path / "run").mkdir()
    return FakeDatabase(tmp_path)


@pytest.fixture
def call(
    fake: FakeDatabase, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> t.Callable[..., t.Any]:
    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(slurm_database, "Machine", fake.machine)
        with patch_module_args({"owner": getpass.getuser(), **options}), pytest.raises(SystemExit):
            slurm_database.main()
        said = capsys.readouterr().out
        assert not fake.password or fake.password not in said
        assert list((fake.root / "run").glob(".aidc-*")) == []
        return json.loads(said)

    return run


def test_all_is_made_once(call: t.Callable[..., t.Any], fake: FakeDatabase) -> None:
    predicted, real = call(_ansible_check_mode=True), call()
    assert {**predicted, "invocation": None} == {**real, "invocation": None}
    assert real["commands"] == STEPS
    file = fake.machine().path(FILE)
    assert file.read_text().splitlines()[-1] == f"StoragePass={fake.password}" and len(fake.password) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    assert call()["changed"] is False
    assert not any(fake.password in word for argv in fake.argvs for word in argv)


@pytest.mark.parametrize(("attribute", "steps"), [
    ("granted", STEPS[2:]), ("user", STEPS[2:]), ("database", STEPS[1:]),
])
def test_what_is_gone_comes_back(
        call: t.Callable[..., t.Any], fake: FakeDatabase, attribute: str, steps: t.Any) -> None:
    call()
    password = fake.password
    setattr(fake, attribute, False)
    assert call()["commands"] == steps
    assert fake.password == password and call()["changed"] is False


def test_a_password_of_the_site_stays(call: t.Callable[..., t.Any], fake: FakeDatabase) -> None:
    file = fake.machine().path(FILE)
    file.parent.mkdir(parents=True)
    file.write_text("StoragePass=ours\n")
    file.chmod(0o644)
    assert call()["commands"] == STEPS
    assert fake.password == "ours" and file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("state", "words"), [
    ("missing", "mariadb: got the program is not installed"), ("failed", "mariadb: got exit status 1: ERROR 2002"),
    ("timeout", "mariadb: got ERROR 2002"),
])
def test_a_database_that_does_not_answer(
        call: t.Callable[..., t.Any], fake: FakeDatabase, state: str, words: str) -> None:
    fake.state = state
    failed = call()
    assert failed["msg"].startswith(words) and failed["msg"].endswith("Nothing was changed.")


def test_a_database_that_says_yes_and_does_nothing(call: t.Callable[..., t.Any], fake: FakeDatabase) -> None:
    fake.deaf = True
    assert "Done before the error: write" in call()["msg"]


@pytest.mark.parametrize("options", [{"database": "a;b"}, {"user": "a'b"}, {"host": "a'b"}, {"owner": "nobody-at-all"}])
def test_values_that_are_refused(call: t.Callable[..., t.Any], options: dict[str, str]) -> None:
    assert call(**options)["msg"].endswith("Nothing was changed.")
