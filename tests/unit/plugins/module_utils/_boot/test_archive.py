# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packed tool as a host runs it: by its own Python, from the one file (also under Python 3.9, tests/py39)."""
from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from plugins.plugin_utils import boot_archive
from tests.unit.plugins.fake import FakeNode

ROOT = Path(__file__).resolve().parents[5]
CODE = ROOT / "plugins" / "module_utils"
PCI = "0000:03:00.0"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("boot") / "aidc-fabric.pyz"
    path.write_bytes(boot_archive.build(CODE))
    return path


def run(archive: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    # -I: nothing of this checkout or of the user's is on the path.
    return subprocess.run([sys.executable, "-I", str(archive), *argv], cwd="/", env={"PATH": "/nowhere"},
                          capture_output=True, text=True, check=False)


def test_the_same_code_gives_the_same_bytes(archive: Path) -> None:
    assert boot_archive.build(CODE) == archive.read_bytes()
    assert len(hashlib.sha256(archive.read_bytes()).hexdigest()) == 64


def test_it_has_what_it_needs_and_no_more(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        assert names == sorted(names) and {info.date_time for info in opened.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert "__main__.py" in names and "aidc_fabric/_roce/configure.py" in names
    assert not any(folder in name for name in names for folder in ("_gate", "_nccl", "_discover", "_fleet", "_site"))
    assert archive.stat().st_size < 500_000


def test_another_file_gives_other_bytes(tmp_path: Path) -> None:
    (tmp_path / "_boot").mkdir()
    cli = tmp_path / "_boot" / "cli.py"
    cli.write_text("from ._other import x\nfrom .plain import main\n", encoding="utf-8")
    (tmp_path / "_boot" / "plain.py").write_text("def main():\n    return 0\n", encoding="utf-8")
    (tmp_path / "_boot" / "_other.py").write_text("x = 1\n", encoding="utf-8")
    first = boot_archive.build(tmp_path)
    (tmp_path / "_boot" / "_other.py").write_text("x = 2\n", encoding="utf-8")
    assert boot_archive.build(tmp_path) != first
    (tmp_path / "_boot" / "_other.py").unlink()
    with pytest.raises(boot_archive.ArchiveError, match="no such module"):
        boot_archive.build(tmp_path)
    cli.write_text("import ansible.module_utils.basic\n", encoding="utf-8")
    with pytest.raises(boot_archive.ArchiveError, match="imports ansible"):
        boot_archive.build(tmp_path)
    cli.write_text("def f():\n    from ansible.errors import AnsibleError\n", encoding="utf-8")
    with pytest.raises(boot_archive.ArchiveError, match="imports ansible"):
        boot_archive.build(tmp_path)


def test_it_runs_on_a_root_of_its_own(archive: Path, tmp_path: Path, node: FakeNode) -> None:
    done = run(archive, "--check", "--root", str(node.root))
    assert done.returncode == 3 and "got no file" in done.stderr
    node.put("/etc/aidc/intent.json", json.dumps({
        "schema_version": 1, "run_id": None, "time": "2026-01-02T03:04:05Z",
        "sections": {"roce_gid": {"ports": [{"pci": PCI}], "subnets": ["198.51.100.0/24"]}}}))
    done = run(archive, "--check", "--json", "--root", str(node.root))
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["drift"] == []
    done = run(archive, "apply", "--reason", "boot", "--root", str(node.root))
    assert (done.returncode, done.stdout) == (0, "boot: nothing differs from the intent of 2026-01-02T03:04:05Z\n")
    node.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n")
    done = run(archive, "--check", "--root", str(node.root))
    assert done.returncode == 2 and f"differs: roce_gid: {PCI} (rail0): no GID that fits" in done.stdout


def test_every_part_of_it_is_importable_without_ansible(archive: Path) -> None:
    code = ("import sys, zipfile; sys.path.insert(0, sys.argv[1]); "
            "[__import__(n[:-3].replace('/', '.')) for n in zipfile.ZipFile(sys.argv[1]).namelist() if n[0] == 'a']")
    done = subprocess.run([sys.executable, "-I", "-c", code, str(archive)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
