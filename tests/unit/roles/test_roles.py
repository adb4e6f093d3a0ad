# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every role: its specification, its defaults, its README and its tags agree."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())


def read(role: str, file: str) -> t.Any:
    return yaml.safe_load((ROOT / "roles" / role / file).read_text(encoding="utf-8"))


def options(role: str) -> dict[str, dict[str, t.Any]]:
    return read(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]


def test_there_are_roles() -> None:
    assert "mlx5_port" in ROLES


@pytest.mark.parametrize("role", ROLES)
def test_defaults_are_those_of_the_specification(role: str) -> None:
    specified = {name: option["default"] for name, option in options(role).items() if "default" in option}
    assert read(role, "defaults/main.yml") == specified


@pytest.mark.parametrize("role", ROLES)
def test_every_option_is_complete(role: str) -> None:
    for name, option in options(role).items():
        assert name.startswith(f"{role}_")
        assert {"description", "type"} <= set(option)
        assert option.get("required") or "default" in option
    assert options(role)[f"{role}_mode"]["choices"] == ["apply", "verify", "off"]


@pytest.mark.parametrize("role", ROLES)
def test_the_readme_names_every_variable_with_its_default(role: str) -> None:
    readme = (ROOT / "roles" / role / "README.md").read_text(encoding="utf-8")
    for name, option in options(role).items():
        shown = yaml.safe_dump(option.get("default"), default_flow_style=True).splitlines()[0]
        assert f"| `{name}` | `{shown}` |" in readme


@pytest.mark.parametrize("role", ROLES)
def test_tags_and_private_names(role: str) -> None:
    for task in read(role, "tasks/main.yml"):
        phase = Path(task["ansible.builtin.import_tasks"]).stem
        assert task["tags"] == [role, f"{role}_{phase}"]
    if (ROOT / "roles" / role / "vars/main.yml").exists():
        assert all(name.startswith(f"__{role}_") for name in read(role, "vars/main.yml"))


@pytest.mark.parametrize("role", ROLES)
def test_no_group_names_inside(role: str) -> None:
    for path in (ROOT / "roles" / role).rglob("*.yml"):
        text = path.read_text(encoding="utf-8")
        assert not any(group in text for group in ("gb200", "l40s", "epyc9754"))
