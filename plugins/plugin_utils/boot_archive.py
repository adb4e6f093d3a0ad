# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Pack the boot tool: the modules' own code and a start file as one zip that Python runs (zipapp)."""
from __future__ import annotations

import ast
import io
import zipfile
from pathlib import Path

PACKAGE = "aidc_fabric"
START = ("_boot", "cli")
SHEBANG = b"#!/usr/bin/python3\n"
# The health program is packed in the same way.
HEALTH_PACKAGE, HEALTH_START = "aidc_health", ("_health", "cli")
MAIN = "import sys\n\nfrom {package}.{start} import main\n\nsys.exit(main())\n"
# The first moment that a zip can name: the same code gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_UNIX = 3
Name = tuple[str, ...]


class ArchiveError(Exception):
    """An import that the archive cannot satisfy."""


def _imports(tree: ast.AST, module: Name) -> set[Name]:
    """Modules, or names in modules, that relative imports name, wherever they stand."""
    found: set[Name] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name.startswith("ansible") for name in node.names):
            raise ArchiveError(f"{'.'.join(module)} imports {node.names[0].name}")
        if not isinstance(node, ast.ImportFrom):
            continue
        if not node.level:
            if (node.module or "").startswith("ansible"):
                raise ArchiveError(f"{'.'.join(module)} imports {node.module}")
            continue
        base = (*module[:len(module) - node.level], *(node.module.split(".") if node.module else ()))
        found |= {(*base, name.name) for name in node.names}
    return found


def modules(root: Path, start: Name = START) -> dict[Name, bytes]:
    """Source of ``start`` and of all that it imports, by name below ``root``."""
    found: dict[Name, bytes] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = root.joinpath(*name).with_suffix(".py")
        if not path.is_file():
            # A name in a module, not a module.
            name = name[:-1]
            path = root.joinpath(*name).with_suffix(".py") if name else root
            if not path.is_file():
                raise ArchiveError(f"{'.'.join(name) or root}: no such module below {root}")
            if name in found:
                continue
        found[name] = path.read_bytes()
        waiting += sorted(_imports(ast.parse(found[name]), name))
    return found


def build(root: Path, start: Name = START, package: str = PACKAGE) -> bytes:
    """The archive of the code below ``root`` (plugins/module_utils) that ``start`` needs.

    Stored and not packed, as packed bytes differ with zlib's version.
    """
    files = {f"{package}/{'/'.join(name)}.py": source for name, source in modules(root, start).items()}
    packages = {package, *(path.rpartition("/")[0] for path in files)}
    files.update({f"{folder}/__init__.py": b"" for folder in packages})
    files["__main__.py"] = MAIN.format(package=package, start=".".join(start)).encode()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, _TIME)
            info.external_attr, info.create_system = _MODE, _UNIX
            archive.writestr(info, files[path])
    return SHEBANG + data.getvalue()
