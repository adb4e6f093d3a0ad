# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which unit tests run on a managed node's Python: a rule over imports, not a list.

A test file is left out when it, or a file of this checkout that it imports, imports a package that managed nodes
do not have. What the modules ship is no reason to leave a test out: such an import there is a defect, and shows.
"""
from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "ansible_collections.aidc.gpu_cluster."
TESTS = ("tests/unit/plugins/modules", "tests/unit/plugins/module_utils")
# What a managed node has, with ansible.module_utils as AnsiballZ brings it, and the test tools.
THERE = (*sys.stdlib_module_names, "ansible.module_utils", "hypothesis", "pytest")


def module_paths() -> list[Path]:
    return sorted(path for path in (ROOT / "plugins/modules").glob("*.py") if path.stem != "__init__")


def _nodes(tree: ast.AST, lazy: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield node
        if lazy or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _nodes(node, lazy)


def _names(path: Path) -> Iterator[str]:
    """Dotted names that ``path`` imports; relative ones as seen from the checkout.

    In tests, imports inside functions do not count: a test that reaches one fails, which shows.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _nodes(tree, lazy=path.is_relative_to(ROOT / "plugins")):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(ROOT).parts[:-node.level] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _file(name: str) -> Path | None:
    """The file of this checkout that ``name`` (a module, or something in one) stands for."""
    parts = name.split(".")
    for end in (len(parts), len(parts) - 1):
        path = ROOT.joinpath(*parts[:end])
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if end and candidate.is_file():
                return candidate
    return None


@cache
def imports(path: Path) -> tuple[frozenset[Path], frozenset[str]]:
    """Files of this checkout that ``path`` imports, and names that a managed node does not have."""
    own, foreign = set(), set()
    for full in _names(path):
        name = full.removeprefix(COLLECTION)
        if file := _file(name):
            own.add(file)
        elif not ((ROOT / name.replace(".", "/")).is_dir() or any(f"{name}.".startswith(f"{it}.") for it in THERE)):
            foreign.add(name)
    return frozenset(own), frozenset(foreign)


def reached(paths: list[Path]) -> set[Path]:
    """``paths`` and every file of this checkout that they import, directly or not."""
    found, waiting = set(), list(paths)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += imports(path)[0]
    return found


def why_not(test: Path, shipped: set[Path]) -> str | None:
    """The import that keeps ``test`` from running on a managed node, or None."""
    for path in sorted(reached([test]) - shipped):
        if foreign := imports(path)[1]:
            return f"{path.relative_to(ROOT)} imports {', '.join(sorted(foreign))}"
    return None


def choose() -> tuple[list[Path], dict[Path, str]]:
    """Test files to run, and those left out with the reason."""
    shipped = reached(module_paths())
    tests = sorted(path for folder in TESTS for path in (ROOT / folder).rglob("test_*.py"))
    reasons = {test: why_not(test, shipped) for test in tests}
    return ([test for test, reason in reasons.items() if reason is None],
            {test: reason for test, reason in reasons.items() if reason is not None})
