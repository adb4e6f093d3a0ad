# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""slurmdbd's database on a host with MariaDB: a password of its own, a database, a user that may do all in it.

The password is in two files of mode 0600 and in no argument list: slurmdbd reads one (`Include`, tried on 24.11), the
other is an option file of the client for the time of a call.
"""
from __future__ import annotations

import contextlib
import os
import pwd
import re
import secrets
import tempfile
import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from .._host.errors import AidcError, Problem
from .._host.files import read_text, write_atomic
from .._host.lock import host_lock
from .._host.machine import Machine

MODE = 0o600
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}\Z")
PASSWORD = re.compile(r"^StoragePass=([A-Za-z0-9_-]+)$", re.MULTILINE)
HEADER = "# Written by aidc.gpu_cluster, module slurm_database: slurmdbd.conf includes it.\n"
CLIENT = ("mariadb", "--batch", "--skip-column-names")
HINT = "is mariadb.service running, and may root come in over its socket (unix_socket)?"


@dataclass(frozen=True)
class State:
    """What is there; of the password only whether it opens the database."""

    password_file: bool
    database: bool
    user: bool
    login: bool


@dataclass(frozen=True)
class Want:
    password_file: str
    owner: str
    database: str
    user: str
    host: str

    def check(self) -> None:
        bad = [Problem(name, repr(value), "letters, digits and _, a letter first, at most 32")
               for name, value in (("database", self.database), ("user", self.user)) if not NAME.match(value)]
        if not re.match(r"[A-Za-z0-9.:%-]+\Z", self.host):
            bad.append(Problem("host", repr(self.host), "a host name or address"))
        if bad:
            raise AidcError(bad)


class Database:
    """One call's view of the host."""

    def __init__(self, machine: Machine, want: Want) -> None:
        self.machine, self.want = machine, want
        self.done: list[list[str]] = []

    # -- reading -----------------------------------------------------------------------------------------

    def password(self) -> str | None:
        try:
            text = read_text(self.machine.path(self.want.password_file))
        except OSError as error:
            raise AidcError([Problem(self.want.password_file, error.strerror or str(error), "a readable file",
                                     "run as root")]) from error
        found = PASSWORD.search(text or "")
        return found[1] if found else None

    def file_is_safe(self) -> bool:
        try:
            status = self.machine.path(self.want.password_file).stat()
            return status.st_mode & 0o777 == MODE and status.st_uid == pwd.getpwnam(self.want.owner).pw_uid
        except (OSError, KeyError):
            return False

    def ask(self, query: str) -> list[str]:
        """Root's answer over the socket."""
        result = self.machine.tool(*CLIENT, "--execute", query)
        if result.state == "missing":
            raise AidcError([Problem("mariadb", "the program is not installed", "MariaDB's client",
                                     "install the package mariadb-server")], self.done)
        if result.state != "ok":
            raise AidcError([Problem("mariadb", result.why(), "an answer", HINT)], self.done)
        return result.stdout.splitlines()

    def login(self, password: str) -> bool:
        """Whether slurmdbd would come in and find its database."""
        with self._private(f"[client]\nuser={self.want.user}\nhost={self.want.host}\npassword={password}\n") as file:
            result = self.machine.tool("mariadb", f"--defaults-file={file}", *CLIENT[1:], "--execute", "SELECT 1",
                                       self.want.database)
        return result.state == "ok" and result.stdout.split() == ["1"]

    def read(self) -> State:
        want, password = self.want, self.password()
        database = bool(self.ask(f"SHOW DATABASES LIKE '{want.database}'"))
        user = self.ask(f"SELECT COUNT(*) FROM mysql.user WHERE User='{want.user}' AND Host='{want.host}'") == ["1"]
        login = database and user and password is not None and self.login(password) and self._may_all()
        return State(password is not None and self.file_is_safe(), database, user, login)

    def _may_all(self) -> bool:
        grants = self.ask(f"SHOW GRANTS FOR '{self.want.user}'@'{self.want.host}'")
        name = self.want.database.replace("_", "\\\\?_")
        return any(re.match(rf"GRANT ALL PRIVILEGES ON (`{name}`|\*)\.\* TO ", line) for line in grants)

    # -- writing -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _private(self, text: str) -> t.Iterator[str]:
        """A file of root's own for the time of one call."""
        descriptor, name = tempfile.mkstemp(prefix=".aidc-", dir=self.machine.path("/run"))
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            yield name
        finally:
            Path(name).unlink(missing_ok=True)

    def keep(self, password: str) -> None:
        path = self.machine.path(self.want.password_file)
        try:
            entry = pwd.getpwnam(self.want.owner)
            write_atomic(path, f"{HEADER}StoragePass={password}\n", MODE)
            os.chown(path, entry.pw_uid, entry.pw_gid)
        except KeyError:
            raise AidcError([Problem(f"user {self.want.owner}", "no such user", "the user that slurmdbd runs as",
                                     "install the package slurmdbd")], self.done) from None
        except OSError as error:
            raise AidcError([Problem(self.want.password_file, error.strerror or str(error), "the password in its place",
                                     "is the disk full?")], self.done) from error
        self.done.append(["write", self.want.password_file])

    def create(self, statement: str, words: list[str]) -> None:
        with self._private(statement) as file:
            self.ask(f"source {file}")
        self.done.append(words)

    def apply(self, steps: list[list[str]]) -> None:
        want, who = self.want, f"'{self.want.user}'@'{self.want.host}'"
        for step in steps:
            password = self.password()
            if step[0] == "write":
                # First of all, so that a run that is killed here goes on with the same password.
                self.keep(password or secrets.token_urlsafe(24))
            elif step[1] == "database":
                self.create(f"CREATE DATABASE IF NOT EXISTS `{want.database}`;\n", step)
            else:
                self.create(f"CREATE USER IF NOT EXISTS {who} IDENTIFIED BY '{password}';\n"
                            f"ALTER USER {who} IDENTIFIED BY '{password}';\n"
                            f"GRANT ALL PRIVILEGES ON `{want.database}`.* TO {who};\n", step)


def plan(have: State, want: Want) -> list[list[str]]:
    steps = []
    if not have.password_file:
        steps.append(["write", want.password_file])
    if not have.database:
        steps.append(["create", "database", want.database])
    if not have.login:
        steps.append(["create", "user", f"{want.user}@{want.host}"])
    return steps


def configure(machine: Machine, params: t.Mapping[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    want = Want(**{name: params[name] for name in ("password_file", "owner", "database", "user", "host")})
    want.check()
    work, good = Database(machine, want), State(True, True, True, True)
    with contextlib.nullcontext() if check_mode else host_lock(machine, "slurm_database"):
        before = work.read()
        steps = plan(before, want)
        if steps and not check_mode:
            work.apply(steps)
            after = work.read()
            if after != good:
                raise AidcError([Problem(f"user {want.user} of {want.database}", str(asdict(after)),
                                         "a login with the password of the file and all rights", HINT)], work.done)
    return {"changed": bool(steps), "before": asdict(before), "after": asdict(good), "commands": steps}
