# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""lab fault list | set | clear | show"""
from __future__ import annotations

import argparse
from pathlib import Path

from lab.faults import manage, table
from lab.faults.table import Row
from lab.instance import Instance


def add(parser: argparse.ArgumentParser) -> None:
    """The subcommands of ``lab fault``."""
    parser.add_argument("--table", type=Path, default=table.TABLE, help="another table of faults")
    commands = parser.add_subparsers(dest="fault_command", required=True)
    commands.add_parser("list", help="all faults of the table, with their parameters")
    commands.add_parser("show", help="the faults that are set now")
    added = commands.add_parser("set", help="set a fault")
    added.add_argument("fault", metavar="NAME")
    added.add_argument("target", metavar="HOST|LEAF")
    added.add_argument("parameters", nargs="*", metavar="KEY=VALUE")
    added = commands.add_parser("clear", help="clear faults: all, those of a name, or of a name and a host")
    added.add_argument("fault", nargs="?", metavar="NAME")
    added.add_argument("target", nargs="?", metavar="HOST|LEAF")


def describe(rows: dict[str, Row]) -> list[str]:
    lines = []
    for row in rows.values():
        parameters = "".join(f" [{name}={item.default}]" for name, item in row.parameters.items())
        lines.append(f"{row.name} {'LEAF' if row.target == 'leaf' else 'HOST'}{parameters}")
        lines.append(f"    {row.text}")
        for name, item in row.parameters.items():
            lines.append(f"    {name}: {item.text}")
        lines.append(f"    {'survives' if row.survives_reboot else 'ends with'} a reboot of the host; fact: {row.fact}")
    return lines


def run(instance: Instance, arguments: argparse.Namespace) -> int:
    rows = table.load(arguments.table)
    if arguments.fault_command == "list":
        lines = describe(rows)
    elif arguments.fault_command == "show":
        lines = manage.show(instance)
    elif arguments.fault_command == "set":
        lines = [manage.set_fault(instance, rows, arguments.fault, arguments.target, arguments.parameters)]
    else:
        lines = manage.clear(instance, rows, arguments.fault, arguments.target)
    print("\n".join(lines))
    return 0
