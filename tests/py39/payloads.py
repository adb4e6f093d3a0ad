
"""The modules as Ansible ships them: one AnsiballZ file each, built by the controller's ansible-core."""
from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import yaml
from ansible import __version__
from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar

from tests.py39.selection import COLLECTION, ROOT, module_paths

NAME = COLLECTION.split(".", 1)[1]
# As ansible.plugins.action.ActionBase._update_module_args gives them; the rest have defaults.
HIDDEN = {"_ansible_check_mode": True, "_ansible_diff": True, "_ansible_remote_tmp": "/tmp/.ansible",
          "_ansible_version": __version__}
UNKNOWN = "no_such_parameter"
BROKEN = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
AnsibleModule(argument_spec={}, supports_check_mode=True)
print(list(zip("a", "b", strict=True)))
"""


def example(path: Path) -> dict[str, Any] | None:
    """Arguments of the module's first documented example that need no templating."""
    texts = [str(node.value.value) for node in ast.parse(path.read_text(encoding="utf-8")).body
             if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
             and [target.id for target in node.targets if isinstance(target, ast.Name)] == ["EXAMPLES"]]
    for task in yaml.safe_load(texts[0]):
        arguments = task.get(NAME + path.stem)
        if NAME + path.stem in task and "{{" not in json.dumps(arguments):
            return dict(arguments or {})
    return None


def _link(path: Path) -> Path:
    """``path`` by the name that Ansible knows a collection by."""
    return ROOT / ".collections" / "ansible_collections" / "aidc" / "gpu_cluster" / path.relative_to(ROOT)


def _build(path: Path, name: str, arguments: dict[str, Any]) -> bytes:
    built = modify_module(
        module_name=name, module_path=str(path), templar=Templar(loader=DataLoader()),
        module_args={**arguments, **HIDDEN, "_ansible_module_name": name},
        # As in a play; the function's own default is not to compress.
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"}, module_compression="ZIP_DEFLATED")
    return bytes(built.b_module_data)


def too_large(directory: Path) -> dict[str, int]:
    """KiB of the modules that are above their budget (tests/budgets.yml)."""
    budget = yaml.safe_load((ROOT / "tests" / "budgets.yml").read_text(encoding="utf-8"))["payload_kib"]
    sizes = {path.stem: path.stat().st_size // 1024 for path in directory.glob("*.empty")}
    return {name: size for name, size in sizes.items() if size > budget}


def write(directory: Path) -> int:
    """MODULE.CASE for each module and case, and one that must be found out. Returns how many modules there are."""
    init_plugin_loader([str(ROOT / ".collections")])
    for path in module_paths():
        arguments = example(path)
        cases = {"unknown": {**(arguments or {}), UNKNOWN: 1}, "empty": {}, "example": arguments}
        for case, chosen in cases.items():
            if chosen is not None:
                (directory / f"{path.stem}.{case}").write_bytes(_build(_link(path), NAME + path.stem, chosen))
    broken = directory / "broken.py"
    broken.write_text(BROKEN, encoding="utf-8")
    (directory / "broken.control").write_bytes(_build(broken, "broken", {}))
    broken.unlink()
    return len(module_paths())
