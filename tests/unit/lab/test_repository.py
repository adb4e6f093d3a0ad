# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' packages: what a role installs is in the repository, and not in the image."""
from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import image
from lab.hardware import state
from lab.repository import build, make

ROOT = Path(__file__).resolve().parents[3]


def packages_of_roles() -> dict[str, set[str]]:
    """Debian packages by role: what its vars name for the family, and what the lab's inventory adds."""
    found = {}
    for file in sorted((ROOT / "roles").glob("*/vars/main.yml")):
        role = file.parents[1].name
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        names = set(data.get(f"__{role}_packages_of", {}).get("Debian", []))
        names |= set(data.get(f"__{role}_doca_packages_of", {}).get("Debian", []))
        for vars_file in (ROOT / "inventories/lab/group_vars").rglob("*.yml"):
            names |= set(yaml.safe_load(vars_file.read_text(encoding="utf-8")).get(f"{role}_packages", []))
        if names:
            found[role] = names
    return found


def test_roles_install_something() -> None:
    found = packages_of_roles()
    assert "ibverbs-utils" in found["rdma_stack"]
    assert yaml.safe_load((ROOT / "roles/rdma_stack/defaults/main.yml").read_text(encoding="utf-8"))[
        "rdma_stack_doca_profile"] in build.content().own
    assert {"openmpi-bin", "nccl-tests"} <= found["nccl_stack"]


@pytest.mark.parametrize("role", sorted(packages_of_roles()))
def test_what_a_role_installs_comes_from_the_repository_and_not_from_the_image(role: str) -> None:
    wanted = packages_of_roles()[role]
    assert wanted <= build.content().names()
    for suite in image.SUITES:
        assert wanted & set(image.packages(suite)) == set()


def test_exchanged_files_are_programs_with_an_interpreter_of_the_image() -> None:
    for name, paths in build.content().exchanged.items():
        for path in paths:
            assert (build.FILES / name / path).read_text(encoding="utf-8").startswith("#!/usr/bin/python3\n")


def test_content_that_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "distribution: [a]\nexchanged: {a: [usr/bin/b]}\nown: {}\n"
    (tmp_path / "packages.yml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(build, "FILES", tmp_path / "packages")
    with pytest.raises(build.ContentError, match=r"exchanged.a: no file usr/bin/b"):
        build.content()
    (tmp_path / "packages.yml").write_text("distribution: [a]\nexchanged: {}\nown: {c: usr/bin}\n", encoding="utf-8")
    with pytest.raises(build.ContentError, match=r"own.c: no file .*/control"):
        build.content()
    (tmp_path / "packages.yml").write_text("distribution: [a]\nexchanged: {}\nown: {}\nkept: {a: [b]}\n",
                                           encoding="utf-8")
    with pytest.raises(build.ContentError, match=r"kept.a: got b, wanted files that are exchanged"):
        build.content()


@pytest.mark.parametrize("real", ["usr/sbin/tool", "sbin/tool"])
def test_an_exchanged_file_may_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: str) -> None:
    pool, files, scratch = (tmp_path / name for name in ("pool", "files", "scratch"))
    for folder in (pool, scratch, files / "a/usr/sbin"):
        folder.mkdir(parents=True)
    (pool / "a_1.deb").touch()
    (files / "a/usr/sbin/tool").write_text("stand-in", encoding="utf-8")

    def run(*argv: str, text: str | None = None) -> str:
        if "-R" in argv:
            tree = Path(argv[-1])
            (tree / real).parent.mkdir(parents=True)
            (tree / "DEBIAN").mkdir()
            (tree / real).write_text("real", encoding="utf-8")
            (tree / "DEBIAN/control").write_text("Package: a\nVersion: 1\n", encoding="utf-8")
        return ""

    monkeypatch.setattr(make, "run", run)
    make.exchange(pool, "a", ["usr/sbin/tool"], ["usr/sbin/tool"], files, scratch)
    assert (scratch / "a" / real).read_text(encoding="utf-8") == "stand-in"
    assert (scratch / "a/usr/libexec/aidc-lab/tool").read_text(encoding="utf-8") == "real"


def test_key_changes_with_files_image_and_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Path("/c/image-1"), Path("/c/standin-1")
    before = build.key(one, two, "trixie")
    assert before == build.key(one, two, "trixie")
    assert len({before, build.key(Path("/c/image-2"), two, "trixie"), build.key(one, Path("/c/standin-2"), "trixie"),
                build.key(one, two, "bookworm")}) == 4
    (tmp_path / "x").write_text("y")
    monkeypatch.setattr(build, "FILES", tmp_path)
    assert build.key(one, two, "trixie") != before


def test_a_changed_package_says_so_in_version_and_description(tmp_path: Path) -> None:
    control = tmp_path / "control"
    control.write_text("Package: a\nVersion: 1:2-3\nDescription: does it\n more\n", encoding="utf-8")
    make.mark(control)
    assert control.read_text(encoding="utf-8") == (
        "Package: a\nVersion: 1:2-3+aidclab1\nDescription: does it (SIMULATED)\n more\n")


def test_a_package_that_the_image_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="package a: got 0 files in the pool, wanted 1; is it in the image already"):
        make.one(tmp_path, "a")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """The server in this process's own network namespace, on a free port."""
    code = ("import sys; from lab.repository import server; server.PORT = 0\n"
            "class S(server.Server):\n"
            "    def server_activate(self):\n"
            "        super().server_activate(); print(self.server_address[1], flush=True)\n"
            "server.Server = S; server.main()")
    (tmp_path / "inside").write_text("here", encoding="utf-8")
    process = subprocess.Popen([sys.executable, "-c", code, "/proc/self/ns/net", "127.0.0.1", str(tmp_path)], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    yield int(process.stdout.readline())
    process.kill()
    process.wait()


def get(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_server_reads_its_folder_and_nothing_else(server: int) -> None:
    assert get(server, "/inside") == (200, b"here")
    assert get(server, "/../../../etc/passwd")[0] == 404
    assert get(server, "/%2e%2e/%2e%2e/etc/passwd")[0] == 404
    assert get(server, "/inside", "PUT")[0] == 501


def test_an_own_package_has_its_maintainer_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, files, scratch = (tmp_path / name for name in ("pool", "files", "scratch"))
    for folder in (pool, scratch, files / "a/usr/bin"):
        folder.mkdir(parents=True)
    (files / "a/control").write_text("Package: a\nVersion: 1\nDescription: x\n", encoding="utf-8")
    (files / "a/postinst").write_text("#!/bin/sh\n", encoding="utf-8")
    (files / "a/postinst").chmod(0o755)
    monkeypatch.setattr(make, "run", lambda *argv, text=None: "")
    make.own(pool, "a", files, scratch, "amd64")
    assert sorted(path.name for path in (scratch / "a/DEBIAN").iterdir()) == ["control", "md5sums", "postinst"]
    assert (scratch / "a/DEBIAN/postinst").stat().st_mode & 0o777 == 0o755
    assert not (scratch / "a/postinst").exists()


def test_what_the_packages_of_doca_say_agrees() -> None:
    """One version of the driver behind all doors."""
    version = "25.10-1.7.1"
    source = next((build.FILES / "mlnx-ofed-kernel-dkms/usr/src").iterdir())
    assert f"version={version}\n" in (source / "mlx5_core.modinfo").read_text(encoding="utf-8")
    assert f"OFED-internal-{version}:" in (build.FILES / "ofed-scripts/usr/bin/ofed_info").read_text(encoding="utf-8")
    assert version == state.OFED_VERSION
    listed = (source / "dkms.conf").read_text(encoding="utf-8")
    assert {f"{path.stem}" for path in source.glob("*.modinfo")} == {
        line.split("=")[1] for line in listed.splitlines() if line.startswith("BUILT_MODULE_NAME")}
    for script in ("postinst", "prerm"):
        text = (build.FILES / "mlnx-ofed-kernel-dkms" / script).read_text(encoding="utf-8")
        assert f"-v {source.name.removeprefix('mlnx-ofed-kernel-')} " in text
