# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from lab.hardware import reload
from lab.hardware.model import Node
from lab.hardware.spec import node_spec
from tests.unit.lab.hardware.test_model import RAIL, Source


@pytest.mark.parametrize("code", [0, 1])
def test_it_returns_at_once_and_is_busy_until_the_launcher_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    (tmp_path / "class/net").mkdir(parents=True)
    model = Node(node_spec("l40s", "h", 1), str(tmp_path), Source([RAIL]))
    seen: list[tuple[list[str], bool]] = []
    real = subprocess.run

    def run(argv: list[str], **arguments: object) -> subprocess.CompletedProcess[str]:
        seen.append((argv[1:], model.reloading))
        return real(["sh", "-c", f"echo no such lab >&2; exit {code}"], check=False, capture_output=True, text=True)

    monkeypatch.setattr(subprocess, "run", run)
    reload.starter(model, "hst", "one")()
    deadline = time.monotonic() + 5
    while model.reloading and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == [(["-m", "lab.driver", "hst", "one"], True)]
    assert model.reloading is False
    assert ("no such lab" in capsys.readouterr().out) is (code != 0)
