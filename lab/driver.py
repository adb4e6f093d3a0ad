# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reload of a host's NIC driver, and reset of the NIC's firmware (mlx5-roce.md 4.8, 5.4)."""
from __future__ import annotations

import subprocess
import sys

from lab import fabric, lifecycle, power
from lab.faults import manage, store
from lab.hardware import door
from lab.hardware.state import Event
from lab.instance import Instance, LabError


def reload(instance: Instance, host: str, event: Event = Event.DRIVER_RELOAD) -> None:
    """What `openibd restart` or `modprobe -r mlx5_core; modprobe mlx5_core` does, or a firmware reset.

    The rails' netdevs go and come back new (MTU 1500, no address until the host's network manager
    acts, GIDs rebuilt); the bus is scanned. Faults on the switch's side stay.
    """
    about = power.known(instance, host)
    if not about.rails:
        raise LabError(f"{host} has no rails, so no driver to reload")
    if power.running(instance, host) is None:
        raise LabError(f"host {host} is off")
    where = instance.host_dir(host) / "door"
    with store.locked(instance):
        fabric.unplug(instance, [rail.port for rail in about.rails])
        door.ask(where, {"do": "driver", "loaded": False})
        door.ask(where, {"do": "event", "event": event.value})
        door.ask(where, {"do": "driver", "loaded": True})
        bound = {rail["interface"] for rail in door.ask(where, {"do": "show"}) if rail["bound"]}
        fabric.connect(instance, host, [rail.port for rail in about.rails if rail.port.interface in bound])
        manage.again(instance, host, ("fabric",))
    subprocess.run(lifecycle.inside(instance, host, ["udevadm", "settle", "--timeout=10"]), check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    # Called by the hardware model when root inside the host restarts the driver (hardware/reload.py).
    reload(Instance(sys.argv[1]), sys.argv[2])
