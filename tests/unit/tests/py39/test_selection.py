# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.py39 import selection

FILES = {
    "plugins/modules/m.py": "from ..module_utils._a.shipped import f\n",
    "plugins/module_utils/_a/shipped.py": "import os\nfrom ansible.module_utils.basic import AnsibleModule\n",
    "plugins/module_utils/_a/controller.py": "def f():\n    import yaml\n",
    "plugins/module_utils/_a/over.py": "from . import controller\n",
    "tests/unit/plugins/modules/test_m.py": "from tests.unit.plugins.fake import f\n",
    "tests/unit/plugins/fake.py": "from ansible_collections.aidc.gpu_cluster.plugins.module_utils._a import shipped\n",
    "tests/unit/plugins/module_utils/_a/test_lazy.py": "def test():\n    import yaml\n",
    "tests/unit/plugins/module_utils/_a/test_top.py": "import os, jinja2.ext\n",
    "tests/unit/plugins/module_utils/_a/test_over.py": "from plugins.module_utils._a.over import x\n",
    "tests/unit/plugins/module_utils/_a/test_ansible.py": "from ansible.errors import AnsibleError\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    selection.imports.cache_clear()
    yield tmp_path
    selection.imports.cache_clear()


def test_left_out_is_what_a_managed_node_cannot_import(tree: Path) -> None:
    chosen, left_out = selection.choose()
    assert [path.name for path in chosen] == ["test_lazy.py", "test_m.py"]
    assert {path.name: reason for path, reason in left_out.items()} == {
        "test_top.py": "tests/unit/plugins/module_utils/_a/test_top.py imports jinja2.ext",
        "test_over.py": "plugins/module_utils/_a/controller.py imports yaml",
        "test_ansible.py": "tests/unit/plugins/module_utils/_a/test_ansible.py imports ansible.errors.AnsibleError",
    }


def test_an_import_in_what_modules_ship_is_no_excuse(tree: Path) -> None:
    shipped = tree / "plugins/module_utils/_a/shipped.py"
    shipped.write_text("import yaml\n", encoding="utf-8")
    assert tree / "tests/unit/plugins/modules/test_m.py" in selection.choose()[0]


def test_every_module_and_its_utils_have_a_test_that_runs() -> None:
    """In this checkout: no package of module_utils that modules ship is left without one."""
    chosen, _left_out = selection.choose()
    tested = selection.reached(chosen)
    assert [path for path in selection.reached(selection.module_paths()) if path not in tested] == []
