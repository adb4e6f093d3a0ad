# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What stands in the way of working with a host, from its host_info. Pure and total."""
from __future__ import annotations

import ipaddress
import re
import typing as t
from collections import defaultdict
from dataclasses import dataclass, field

from .._host.errors import Problem

_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_GIB = 1 << 30
Data = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Settings:
    """``supported_os``: id and version in one text; ``disks``: path -> bytes that must be free."""

    supported_os: tuple[str, ...] = ()
    disks: dict[str, float] = field(default_factory=dict)
    free_inodes_percent: float = 5.0
    python_min: tuple[int, ...] = (3, 9)
    require_time_sync: bool = True
    max_offset_seconds: float = 1.0
    warn_offset_seconds: float = 0.05
    require_names: bool = True


@dataclass
class Findings:
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def error(self, what: str, got: t.Any, wanted: str, hint: str = "") -> None:
        self.errors.append(Problem(what, str(got), wanted, hint))

    def warn(self, what: str, got: t.Any, wanted: str, hint: str = "") -> None:
        self.warnings.append(Problem(what, str(got), wanted, hint))


def _dict(data: Data, key: str) -> dict[str, t.Any]:
    value = data.get(key)
    return dict(value) if isinstance(value, t.Mapping) else {}


def _why(data: Data, key: str) -> str:
    return str(_dict(data, "why").get(key) or "not known")


def _system(data: Data, settings: Settings, found: Findings) -> None:
    """A version such as 9.4 is of the release 9."""
    system = _dict(data, "os")
    text = f"{system.get('id')} {system.get('version')}"
    if not {text, text.partition(".")[0]} & set(settings.supported_os):
        found.error("operating system", text if system else _why(data, "os"), ", ".join(settings.supported_os),
                    "not supported: install one of these, or add it to preflight_supported_os and test it yourself")


def _python(data: Data, settings: Settings, found: Findings) -> None:
    python = _dict(data, "python")
    version = tuple(int(part) for part in str(python.get("version", "0")).split(".")[:2] if part.isdigit())
    if version < settings.python_min:
        found.error("Python", f"{python.get('version')} ({python.get('executable')})",
                    f"{'.'.join(map(str, settings.python_min))} or newer",
                    "install a newer one and name it in ansible_python_interpreter")


def _root(data: Data, found: Findings) -> None:
    if data.get("uid") != 0:
        found.error("sudo", f"user id {data.get('uid')} after become", "root (0)", "look at become_user and sudoers")


def _time(data: Data, settings: Settings, found: Findings) -> None:
    clock = _dict(data, "time")
    offset, synchronised = clock.get("offset_seconds"), clock.get("synchronised")
    hint = "install and start chrony, and give it servers that it reaches"
    if synchronised is not True:
        got = f"not synchronised, says {clock.get('source')}" if synchronised is False else _why(data, "time")
        report = found.error if settings.require_time_sync else found.warn
        report("clock", got, "a synchronised clock", hint)
    if isinstance(offset, (int, float)):
        got, limit = f"{abs(offset):g} s off, says {clock.get('source')}", settings.max_offset_seconds
        if abs(offset) > limit:
            found.error("clock", got, f"at most {limit:g} s", "step it: chronyc makestep")
        elif abs(offset) > settings.warn_offset_seconds:
            found.warn("clock", got, f"at most {settings.warn_offset_seconds:g} s", "look at chronyc sources")


def _own_addresses(data: Data) -> set[str]:
    netdevs = data.get("netdevs")
    entries = [one for one in netdevs if isinstance(one, t.Mapping)] if isinstance(netdevs, (list, tuple)) else []
    return {str(text).partition("/")[0] for one in entries for text in one.get("addresses") or ()}


def _is(text: str, what: str) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(text.partition("%")[0]), what))
    except ValueError:
        return False


def _reverse(data: Data, hostname: str, addresses: t.Sequence[str], found: Findings) -> None:
    reverse = _dict(_dict(data, "names"), "reverse")
    for address in addresses:
        names = [str(name) for name in reverse.get(address) or ()]
        if hostname not in names and hostname not in [name.partition(".")[0] for name in names]:
            found.error(f"name of {address}", ", ".join(names) or "none", hostname,
                        "the reverse entry is missing in DNS or /etc/hosts")


def _names(host: str, data: Data, found: Findings) -> None:
    names, hostname = _dict(data, "names"), str(data.get("hostname"))
    addresses = names.get("addresses")
    known = {hostname, hostname.partition(".")[0], str(names.get("fqdn")), *(addresses or ())}
    if host not in known:
        found.error("hostname", hostname, host, "hostnamectl set-hostname, or another name in the inventory")
    if addresses is None:
        found.error("name resolution", _why(data, "names"), f"addresses of {hostname}", "getent ahosts")
        return
    loopback = [one for one in addresses if _is(one, "is_loopback")]
    local = [one for one in addresses if _is(one, "is_link_local")]
    others = [one for one in addresses if one not in loopback and one not in local]
    hint = f"give {hostname} its address in DNS or in /etc/hosts of all hosts"
    if loopback:
        found.error(f"addresses of {hostname}", ", ".join(addresses), "one that other hosts reach",
                    f"remove {hostname} from the line of {loopback[0]} in /etc/hosts")
    elif local:
        found.warn(f"addresses of {hostname}", ", ".join(addresses), "an answer of DNS or /etc/hosts",
                   f"nss-myhostname made it up, other hosts know no {hostname}; {hint}")
    elif not others:
        found.error(f"addresses of {hostname}", "none", "one that other hosts reach", hint)
    own = _own_addresses(data)
    if others and not own & set(others):
        found.error(f"addresses of {hostname}", ", ".join(others), "an address of this host", hint)
    _reverse(data, hostname, others, found)


def _disks(data: Data, settings: Settings, found: Findings) -> None:
    disks = data.get("disks")
    entries = [one for one in disks if isinstance(one, t.Mapping)] if isinstance(disks, (list, tuple)) else []
    for disk in entries:
        path = str(disk.get("path"))
        wanted, free = settings.disks.get(path), int(disk.get("free_bytes") or 0)
        if wanted is None:
            continue
        if free < wanted:
            found.error(f"free space of {path}", f"{free / _GIB:.2f} GiB", f"{wanted / _GIB:g} GiB", "make room")
        inodes, left = int(disk.get("inodes") or 0), int(disk.get("free_inodes") or 0)
        if inodes and 100 * left < settings.free_inodes_percent * inodes:
            found.error(f"free inodes of {path}", f"{left} of {inodes}", f"{settings.free_inodes_percent:g} %",
                        "many small files: look with du --inodes")


def _answer(result: t.Any) -> Problem | None:
    """Why there is nothing to look at."""
    if not isinstance(result, t.Mapping):
        return Problem("host", "no result of host_info", "its result", "did the play skip it?")
    if not result.get("unreachable") and not result.get("failed") and "os" in result:
        return None
    said = " ".join(str(result.get("msg") or "no message").split())[:300]
    if result.get("unreachable"):
        return Problem("host", f"unreachable: {said}", "an SSH connection", "is it up? ssh to it by hand")
    if re.search(r"sudo|become|password", said, re.IGNORECASE):
        return Problem("sudo", said, "root without a question", "give the password with --ask-become-pass or a vault")
    return Problem("host_info", said, "its result", "is there a Python 3.9 or newer on the host?")


def check(host: str, result: t.Any, settings: Settings) -> Findings:
    """``result`` is what the task host_info registered for the host."""
    found, nothing = Findings(), _answer(result)
    if nothing is not None:
        found.errors.append(nothing)
        return found
    _system(result, settings, found)
    _python(result, settings, found)
    _root(result, found)
    machine_id = str(result.get("machine_id"))
    if not _MACHINE_ID.fullmatch(machine_id):
        found.error("machine-id", machine_id, "32 hexadecimal digits", "systemd-machine-id-setup, then reboot")
    _time(result, settings, found)
    if settings.require_names:
        _names(host, result, found)
    _disks(result, settings, found)
    return found


def twins(machine_ids: t.Mapping[str, str | None]) -> dict[str, Problem]:
    """Hosts that share a machine-id: clones of one image, to which DHCP gives one address."""
    found, holders = {}, defaultdict(list)
    for host, own in machine_ids.items():
        holders[own].append(host)
    for host, own in machine_ids.items():
        others = [name for name in holders[own] if name != host]
        if own and others:
            found[host] = Problem("machine-id", f"{own}, that of {', '.join(others)} too", "one of its own",
                                  "remove /etc/machine-id, run systemd-machine-id-setup, reboot")
    return found
