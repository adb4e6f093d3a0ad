# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Marks CHANGEME that are left in the files of an inventory: in values, in keys, and in comments beside them."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

import yaml

MARK = "CHANGEME"
_VAULT = "$ANSIBLE_VAULT"
# What Ansible reads as an inventory source or a file of variables; text for people and programs are neither.
_SUFFIXES = {"", ".yml", ".yaml", ".json", ".ini", ".toml"}
_FOLDERS = ("group_vars", "host_vars")


@dataclass(frozen=True)
class Left:
    """``key`` is the path of the value, of the key below a comment that stands alone, or empty."""

    file: str
    line: int
    key: str

    def text(self) -> str:
        return f"{self.file}:{self.line}: {self.key or 'no key'}: still marked {MARK}"


@dataclass(frozen=True)
class _Entry:
    """A key of a mapping, or an item of a list, where it begins."""

    line: int
    path: str


class _Walk:
    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        # Lines that a marked scalar covers, and its path; none for one that is encrypted.
        self.values: list[tuple[range, str]] = []

    def node(self, node: yaml.Node, path: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = f"{path}.{key.value}" if path else str(key.value)
                self.entries.append(_Entry(key.start_mark.line, name))
                self.scalar(key, name)
                self.node(value, name)
        elif isinstance(node, yaml.SequenceNode):
            for position, value in enumerate(node.value):
                self.entries.append(_Entry(value.start_mark.line, f"{path}[{position}]"))
                self.node(value, f"{path}[{position}]")
        else:
            self.scalar(node, path)

    def scalar(self, node: yaml.Node, path: str) -> None:
        if isinstance(node, yaml.ScalarNode) and MARK in node.value:
            first, last = node.start_mark.line, node.end_mark.line
            # A block of text ends where the next line begins.
            lines = range(first, last + 1 if node.end_mark.column else max(last, first + 1))
            self.values.append((lines, "" if node.tag.endswith("vault") else path))


def _walk(text: str) -> _Walk | None:
    walk = _Walk()
    try:
        for node in yaml.compose_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if node is not None:
                walk.node(node, "")
    except yaml.YAMLError:
        # Ansible says better what is wrong with the file.
        return None
    return walk


def _common(paths: t.Sequence[str]) -> str:
    """What several keys of one line are parts of."""
    if len(paths) == 1:
        return paths[0]
    parts = [re.findall(r"[^.\[]+|\[\d+\]", path) for path in paths]
    shared = []
    for column in zip(*parts):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return "".join(part if part.startswith("[") else f".{part}" for part in shared).lstrip(".")


def _beside(walk: _Walk, number: int, alone: bool) -> str:
    """The key that a comment is about: on its line, else below it."""
    here = [entry.path for entry in walk.entries if entry.line == number]
    if here:
        return _common(here)
    after = [entry for entry in walk.entries if entry.line > number]
    before = [entry for entry in walk.entries if entry.line < number]
    if alone and after:
        return min(after, key=lambda entry: entry.line).path
    return before[-1].path if before else ""


def find(text: str, file: str) -> list[Left]:
    """In the order of the lines; one for each line."""
    if MARK not in text or text.startswith(_VAULT):
        return []
    walk = _walk(text)
    lines = text.splitlines()
    if walk is None:
        return [Left(file, number, _ini_key(line)) for number, line in enumerate(lines, 1) if MARK in line]
    found = {lines_of.start: path for lines_of, path in walk.values if path}
    covered = {number for lines_of, _path in walk.values for number in lines_of}
    for number, line in enumerate(lines):
        if MARK in line and number not in covered:
            found[number] = _beside(walk, number, line.lstrip().startswith("#"))
    return [Left(file, number + 1, path) for number, path in sorted(found.items())]


def _ini_key(line: str) -> str:
    return re.split(r"[=\s]", line.strip(), maxsplit=1)[0].strip("[];#:")


def _files_below(folder: Path) -> list[Path]:
    """As Ansible goes through a folder: hidden files, backups and what it ignores by suffix are not read."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir():
            found += _files_below(path)
        elif path.is_file() and path.suffix in _SUFFIXES:
            found.append(path)
    return found


def files(source: str) -> list[Path]:
    """The files of an inventory source: itself, or all of its folder; with the variables beside it."""
    path = Path(source)
    if "," in source or not path.exists():
        return []
    if path.is_dir():
        return _files_below(path)
    return [path, *(file for name in _FOLDERS if (path.parent / name).is_dir()
                    for file in _files_below(path.parent / name))]


def left(sources: t.Iterable[str]) -> list[Left]:
    """Of all sources; a file that several have is told once. Bytes that are no text are another program's."""
    found: dict[Path, list[Left]] = {}
    for path in (path for source in sources for path in files(source)):
        if path not in found:
            found[path] = find(path.read_text(encoding="utf-8", errors="replace"), str(path))
    return [one for lefts in found.values() for one in lefts]
