# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every module: documentation and argument specification say the same, and all its parts are there."""
from __future__ import annotations

import importlib
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
ATTRIBUTES = ("check_mode", "diff_mode", "idempotent")


def load(name: str) -> t.Any:
    return importlib.import_module(f"ansible_collections.aidc.gpu_cluster.plugins.modules.{name}")


def specification(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, t.Any]:
    """What the module hands to AnsibleModule."""
    module, seen = load(name), {}

    class Stop(Exception):
        pass

    def capture(**arguments: t.Any) -> None:
        seen.update(arguments)
        raise Stop

    monkeypatch.setattr(module, "AnsibleModule", capture)
    with pytest.raises(Stop):
        module.main()
    assert seen["supports_check_mode"] is True
    return seen["argument_spec"]


def same(documented: dict[str, t.Any], spec: dict[str, t.Any], path: str) -> None:
    assert set(documented) == set(spec), path
    for name, doc in documented.items():
        here = spec[name]
        assert doc["description"], f"{path}.{name}"
        for key in ("type", "elements", "required", "default", "choices"):
            assert doc.get(key) == here.get(key), f"{path}.{name}.{key}"
        same(doc.get("suboptions", {}), here.get("options", {}), f"{path}.{name}")


def options(documentation: dict[str, t.Any]) -> dict[str, t.Any]:
    """The module's own options and those of its fragments, as ansible-doc shows them."""
    found: dict[str, t.Any] = {}
    for name in documentation["extends_documentation_fragment"]:
        fragment = importlib.import_module(
            f"ansible_collections.aidc.gpu_cluster.plugins.doc_fragments.{name.rsplit('.', 1)[-1]}")
        shared = yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)["options"]
        assert not set(shared) & set(documentation["options"]), name
        found.update(shared)
    return {**found, **documentation["options"]}


def test_there_are_modules() -> None:
    assert {"mlx5_info", "mlx5_port"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_documentation_and_specification_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documentation = yaml.safe_load(load(name).DOCUMENTATION)
    assert documentation["module"] == name
    same(options(documentation), specification(name, monkeypatch), name)
    assert all(attribute in documentation["attributes"] for attribute in ATTRIBUTES)
    assert documentation["seealso"]
    assert "aidc.gpu_cluster.attributes" in documentation["extends_documentation_fragment"]


def samples(documented: dict[str, t.Any], path: str) -> None:
    for name, doc in documented.items():
        assert doc["description"], f"{path}.{name}"
        if "contains" in doc:
            samples(doc["contains"], f"{path}.{name}")
        else:
            assert "sample" in doc, f"{path}.{name}"


@pytest.mark.parametrize("name", MODULES)
def test_every_return_value_has_a_sample(name: str) -> None:
    samples(yaml.safe_load(load(name).RETURN), name)


@pytest.mark.parametrize("name", MODULES)
def test_examples_use_the_full_name_and_known_options(name: str) -> None:
    tasks = yaml.safe_load(load(name).EXAMPLES)
    options = yaml.safe_load(load(name).DOCUMENTATION)["options"]
    assert tasks
    for task in tasks:
        assert set(task[f"aidc.gpu_cluster.{name}"] or {}) <= set(options)


@pytest.mark.parametrize("part", ["DOCUMENTATION", "EXAMPLES", "RETURN"])
@pytest.mark.parametrize("name", MODULES)
def test_no_address_reads_as_a_number(name: str, part: str) -> None:
    """YAML 1.1 takes an unquoted 0000:03:00.0 for a number to the base of 60: 180.0."""
    for token in yaml.scan(getattr(load(name), part)):
        if isinstance(token, yaml.ScalarToken) and token.plain and ":" in token.value:
            value = yaml.safe_load(token.value)
            assert isinstance(value, (str, dict)), f"line {token.start_mark.line + 1}: {token.value}"
