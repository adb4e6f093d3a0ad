# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restart of the driver from inside a host: only the launcher can make a rail's links anew, so it is called for.

``openibd restart`` in a host writes to a file of the model; what then runs is the same as ``lab driver-reload``.
"""
from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from lab.hardware.model import Node

CHECKOUT = Path(__file__).resolve().parents[2]


def starter(model: Node, instance: str, host: str) -> Callable[[], None]:
    """What starts the reload and returns at once: it asks the model itself, which is busy with our caller."""
    def run() -> None:
        try:
            done = subprocess.run([sys.executable, "-m", "lab.driver", instance, host], cwd=CHECKOUT, text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if done.returncode != 0:
                print(f"lab: {host}: reload of the driver: {done.stderr.strip()[-500:]}", flush=True)
        finally:
            model.reloading = False

    def start() -> None:
        model.reloading = True
        threading.Thread(target=run, name="reload", daemon=True).start()

    return start
