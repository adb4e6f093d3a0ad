# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import changeme

TEXT = """\
---
# CHANGEME: all of it.
a: 1
b:
  c: CHANGEME
  d: [x, CHANGEME]
rails:
  - {rail: 0, pci: "0000:41:00.0"}  # CHANGEME: the slot
  - rail: 1
    pci: x  # CHANGEME
# About e, CHANGEME
# in two lines
e: good
f: |
  first
  CHANGEME
g: 1  # CHANGEME
CHANGEME-host: {}
secret: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  CHANGEME
last: 1
# CHANGEME at the end
"""


def found(text: str) -> list[tuple[int, str]]:
    return [(one.line, one.key) for one in changeme.find(text, "f.yml")]


def test_values_keys_and_comments() -> None:
    assert found(TEXT) == [
        (2, "a"), (5, "b.c"), (6, "b.d[1]"), (8, "rails[0]"), (10, "rails[1].pci"), (11, "e"), (14, "f"), (17, "g"),
        (18, "CHANGEME-host"), (23, "last")]


def test_the_text_names_file_line_and_key() -> None:
    assert changeme.find("a: CHANGEME\n", "/inv/x.yml")[0].text() == "/inv/x.yml:1: a: still marked CHANGEME"
    assert changeme.find("# CHANGEME\n", "x")[0].text() == "x:1: no key: still marked CHANGEME"


def test_nothing_to_find() -> None:
    assert found("a: 1\n") == []
    assert found("$ANSIBLE_VAULT;1.1;AES256\nCHANGEME\n") == []


def test_other_formats_and_broken_yaml() -> None:
    assert found("[gb200]\nhost1 ansible_user=CHANGEME\n[gb200:vars]\nuser = CHANGEME\n") == [(2, "host1"), (4, "user")]
    assert found("a: [\nb: CHANGEME\n") == [(2, "b")]


def test_files_of_a_source(tmp_path: Path) -> None:
    for name in ("hosts.yml", "group_vars/all/10.yml", "group_vars/x.yml", "host_vars/h", ".state/y.yml", "README.md",
                 "old.yml~", "group_vars/all/.z.yml", "script.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a: CHANGEME\n", encoding="utf-8")
    (tmp_path / "group_vars/gb200").mkdir()
    (tmp_path / "group_vars/gb200/00.yml").symlink_to("../x.yml")
    wanted = ["group_vars/all/10.yml", "group_vars/gb200/00.yml", "group_vars/x.yml", "host_vars/h", "hosts.yml"]
    assert [one.file for one in changeme.left([str(tmp_path)])] == [f"{tmp_path}/{name}" for name in wanted]
    # A file as the source has the variables beside it; no file is told twice.
    both = changeme.left([str(tmp_path / "hosts.yml"), str(tmp_path)])
    assert sorted(one.file for one in both) == sorted(f"{tmp_path}/{name}" for name in wanted)
    assert changeme.left(["a,b,", "/nowhere"]) == []
