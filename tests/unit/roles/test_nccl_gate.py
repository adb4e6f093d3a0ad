# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role uses no variable that it does not define."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles" / "nccl_gate"


def load(name: str) -> dict[str, object]:
    data: dict[str, object] = yaml.safe_load((ROLE / name).read_text(encoding="utf-8"))
    return data


def test_every_variable_that_tasks_use_is_defined() -> None:
    known = {*load("defaults/main.yml"), *load("vars/main.yml")}
    text = "".join(path.read_text(encoding="utf-8") for path in [*ROLE.glob("tasks/*.yml"), ROLE / "vars/main.yml"])
    known |= set(re.findall(r"register: (\w+)", text)) | set(re.findall(r"^ +(__nccl_gate_\w+):", text, re.MULTILINE))
    used = set(re.findall(r"\b(?:__)?nccl_gate_[a-z]\w*", text)) - {
        "nccl_gate_preflight",
        "nccl_gate_test",
        "nccl_gate_report",
    }
    assert used - known == set()
