# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A molecule run that ends in the middle: its lab goes with the runner, or with the next destroy."""
from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.instance import Instance
from tests import molecule
from tests.lab_plugin import BIN, ROOT, run_lab

NAME = "mlx5_port"
LAB = next(scenario.lab for scenario in molecule.scenarios(ROOT) if scenario.name == NAME)


@pytest.fixture(autouse=True)
def no_lab() -> Iterator[None]:
    run_lab("down", name=LAB)
    yield
    run_lab("down", name=LAB)


def wait_for(condition: str, seconds: float = 150) -> None:
    """Until the instance says so in its record."""
    deadline = time.monotonic() + seconds
    while Instance(LAB).read().get("status") != condition:
        assert time.monotonic() < deadline, f"the lab is not {condition} after {seconds:.0f} s"
        time.sleep(0.1)


def start(step: str, ephemeral: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(BIN / "molecule"), step, "-s", NAME], cwd=ROOT, stdin=subprocess.DEVNULL,
                            env=molecule.environment(ROOT, str(ephemeral)), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("moment", ["starting", "up"])
def test_destroy_cleans_after_a_killed_run(tmp_path: Path, moment: str) -> None:
    process = start("create", tmp_path)
    wait_for(moment)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert Instance(LAB).exists()
    # Another state directory, as in a new checkout: what counts is what is on the machine.
    assert start("destroy", tmp_path / "other").wait(timeout=200) == 0
    assert not Instance(LAB).exists()


def test_the_runner_leaves_nothing_when_time_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert molecule.main(["--limit", "8", NAME]) == 1
    assert "FAILED: did not end in 8 s" in capsys.readouterr().out
    assert not Instance(LAB).exists()
