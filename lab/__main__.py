# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's command line: ./lab/lab COMMAND"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from lab import cgroup, doctor, driver, lifecycle, power, prune, status
from lab.faults import cli as fault_cli
from lab.fleet import Fleet, FleetError, fleet_path, load
from lab.hardware.door import DoorError
from lab.hardware.spec import shape_names
from lab.hardware.state import Event
from lab.instance import Instance, LabError
from lab.inventory import TRACKED
from lab.state import StateError, state_dir


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lab", description="Hosts, a fabric and emulated mlx5 hardware on this machine.")
    top.add_argument("--name", default="lab", help="which lab, if several run (default: lab)")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    for name, text in (("doctor", "check whether this machine can run the fleet"),
                       ("image", "build the fleet's images and package repositories if they are not there"),
                       ("up", "start the fleet and write its inventory")):
        added = command(name, text)
        added.add_argument("--fleet", default="default", help="a fleet file, or the name of one in lab/fleets")
        if name == "up":
            added.add_argument("--inventory", type=Path, default=TRACKED, help="folder that gets hosts.yml")
    command("status", "list the hosts: state and memory")
    added = command("exec", "run a command in a host as root")
    added.add_argument("host")
    added.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    added = command("reboot", "reboot a host and wait until it runs again")
    added.add_argument("--cold", action="store_true", help="take its power away and give it back")
    added.add_argument("host")
    added = command("driver-reload", "reload the NIC driver of a host: its rails' interfaces go and come back new")
    added.add_argument("--firmware-reset", action="store_true", help="reset the NICs' firmware with it")
    added.add_argument("host")
    fault_cli.add(command("fault", "list, set, clear and show faults"))
    command("prune", "remove cached images, layers and repositories that this version of the checkout does not use")
    command("down", "remove the lab: processes, mounts, namespaces, files; the caches stay")
    return top


def read_fleet(name: str) -> Fleet:
    return load(fleet_path(name), set(shape_names()))


def recorded_fleet(instance: Instance) -> Fleet:
    record = instance.read()
    if not record:
        raise LabError(f"{instance.name} is not up; start it with: ./lab/lab up")
    return load(Path(record["fleet"]), set(shape_names()))


def run_doctor(instance: Instance, fleet: Fleet) -> int:
    results = doctor.checks(instance, fleet)
    for check in results:
        print(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:11} {check.text}")
    return 0 if all(check.ok for check in results) else 1


def run_image(instance: Instance, fleet: Fleet) -> int:
    state_dir(create=True)
    builders = instance.cgroup / lifecycle.BUILDERS
    with instance.lock("image"):
        there = instance.cgroup.exists()
        builders.mkdir(parents=True, exist_ok=True)
        lower, repositories = lifecycle.build(fleet, instance.state / "cache", builders)
        folders = {path for each in lower.values() for path in each} | set(repositories)
        print("\n".join(map(str, sorted(folders))))
        cgroup.remove(builders if there else instance.cgroup)
    return 0


def run_exec(instance: Instance, host: str, argv: list[str]) -> int:
    argv = argv[1:] if argv[:1] == ["--"] else argv
    if not argv:
        raise LabError("exec: a command is needed, for example: ./lab/lab exec gb1 ibv_devinfo")
    outside = instance.host_cgroup(host) / "outside"
    command = lifecycle.inside(instance, host, argv)
    return subprocess.run(command, check=False, preexec_fn=lambda: cgroup.enter(outside)).returncode


def dispatch(arguments: argparse.Namespace) -> int:
    state_dir(create=arguments.command in ("up", "doctor"))
    instance = Instance(arguments.name)
    command = arguments.command
    if command == "doctor":
        return run_doctor(instance, read_fleet(arguments.fleet))
    if command == "image":
        return run_image(instance, read_fleet(arguments.fleet))
    if command == "up":
        lifecycle.up(instance, read_fleet(arguments.fleet), arguments.inventory.resolve())
    elif command == "status":
        print("\n".join(status.lines(instance, recorded_fleet(instance))))
    elif command == "exec":
        return run_exec(instance, arguments.host, arguments.argv)
    elif command == "reboot":
        print(f"{arguments.host} runs again after {power.reboot(instance, arguments.host, arguments.cold):.1f} s")
    elif command == "driver-reload":
        driver.reload(instance, arguments.host,
                      Event.FIRMWARE_RESET if arguments.firmware_reset else Event.DRIVER_RELOAD)
        print(f"{arguments.host}: driver reloaded")
    elif command == "prune":
        with instance.lock("prune"):
            print(f"lab: {prune.prune(instance.state, lifecycle.say) // 1_000_000} MB freed")
    elif command == "fault":
        return fault_cli.run(instance, arguments)
    else:
        lifecycle.down(instance)
    return 0


def main() -> int:
    arguments = parser().parse_args()
    if os.geteuid() != 0:
        print("lab: root is needed: the lab makes namespaces, mounts and cgroups; use sudo", file=sys.stderr)
        return 2
    try:
        return dispatch(arguments)
    except (LabError, FleetError, StateError, DoorError, TimeoutError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lab: interrupted; `./lab/lab down` removes what was made", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
