# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia in a running host: loaded from its disk, held by a process, and a GPU that a boot does not find."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.hardware.door import ask
from tests.lab_plugin import ROOT, Lab, Labs, labs, run_lab

pytestmark = pytest.mark.slow  # a lab of its own and a reboot

__all__ = ["labs"]
HOST, DOOR = "nvgb1", "/dev/aidc-lab/modules"
RELEASE = os.uname().release
FILE = f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko"
FIELDS = ["version=580.159.04", "license=Dual MIT/GPL", f"vermagic={RELEASE} SMP",
          "parmtype=NVreg_EnableStreamMemOPs:int"]
KO = ROOT / "lab/repository/packages/dkms/usr/libexec/aidc-lab/ko.py"
# As long as the kernel may answer from its cache (lab/hardware/fs.py).
CACHE_SECONDS = 0.3


@pytest.fixture(scope="module", name="lab")
def fixture_lab(labs: Labs) -> Iterator[Lab]:
    with labs.during("gpus", "tests/integration/fleets/nvconfig.yml") as lab:
        lab.inside(HOST, "python3", "-c", KO.read_text(encoding="utf-8"), FILE, *FIELDS)
        yield lab


def change(lab: Lab, check: bool = True, **wanted: Any) -> bool:
    done = lab.inside(HOST, "python3", "-c", f"import os; os.write(os.open('{DOOR}', os.O_WRONLY), b'''"
                      f"{json.dumps(wanted)}''')", check=check)
    return done.returncode == 0


def seen(lab: Lab, folder: Path) -> dict[str, Any]:
    """By the collection's own module."""
    play = folder / "play.yml"
    play.write_text(f"- hosts: {HOST}\n  gather_facts: false\n  "
                    "tasks: [{aidc.gpu_cluster.gpu_info: , become: true}]\n",
                    encoding="utf-8")
    done = lab.play(str(play))
    assert done.code == 0, done.text[-3000:]
    return done.results("aidc.gpu_cluster.gpu_info")[HOST]


def test_a_driver_from_load_to_boot(lab: Lab, tmp_path: Path) -> None:
    before = seen(lab, tmp_path)
    assert (before["driver"]["is_loaded"], before["count"]["pci"], before["count"]["driver"]) == (False, 4, None)
    assert change(lab, load="nvidia", file=FILE, parameters={"NVreg_EnableStreamMemOPs": "1"})
    now = seen(lab, tmp_path)
    assert (now["driver"]["loaded"], now["driver"]["flavour"], now["count"]["driver"]) == ("580.159.04", "open", 4)
    assert now["parameters"]["in_force"] == {"EnableStreamMemOPs": "1"}
    assert now["driver"]["references"] == 0 and now["holders"] == []

    lab.inside(HOST, "systemd-run", "-q", "--unit=holder", "sh", "-c", "exec sleep 600 </dev/nvidia0")
    time.sleep(1)
    held = seen(lab, tmp_path)
    assert held["driver"]["references"] == 1 and held["holders"][0]["files"] == ["/dev/nvidia0"]
    assert not change(lab, check=False, unload="nvidia")
    lab.inside(HOST, "systemctl", "stop", "holder")
    assert change(lab, unload="nvidia")
    time.sleep(CACHE_SECONDS)
    assert not seen(lab, tmp_path)["driver"]["is_loaded"]

    ask(lab.instance.host_dir(HOST) / "door", {"do": "gpu", "gpu": 3, "condition": "lost"})
    time.sleep(CACHE_SECONDS)
    assert [gpu["answers"] for gpu in seen(lab, tmp_path)["gpus"]] == [True, True, True, False]
    run_lab("reboot", HOST, name="gpus")
    assert seen(lab, tmp_path)["count"]["pci"] == 3
