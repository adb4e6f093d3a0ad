# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._preflight import check
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._preflight.check import Settings

GIB = 1 << 30
SETTINGS = Settings(("ubuntu 22.04", "ubuntu 24.04", "rhel 9", "debian 13"), {"/": 5.0 * GIB, "/var": 5.0 * GIB})


def info(**changes: t.Any) -> dict[str, t.Any]:
    """host_info of a host on which nothing is wrong."""
    return {
        "os": {"id": "ubuntu", "version": "24.04"}, "python": {"version": "3.12.3", "executable": "/usr/bin/python3"},
        "uid": 0, "hostname": "n1", "machine_id": "4a1c3e0f5b7d49d2a8c6e1f203948576", "why": {},
        "time": {"source": "chrony", "synchronised": True, "offset_seconds": 0.0001, "stratum": 3},
        "names": {"addresses": ["192.0.2.1"], "fqdn": "n1.example.com",
                  "reverse": {"192.0.2.1": ["n1.example.com", "n1"]}},
        "netdevs": [{"name": "eth0", "addresses": ["192.0.2.1/24"]}],
        "disks": [{"path": "/", "free_bytes": 9 * GIB, "inodes": 1000, "free_inodes": 900},
                  {"path": "/scratch", "free_bytes": 0, "inodes": 0, "free_inodes": 0}], **changes}


def errors(settings: Settings = SETTINGS, host: str = "n1", **changes: t.Any) -> list[tuple[str, str, str]]:
    found = check.check(host, info(**changes), settings)
    return [(one.object, one.got, one.wanted) for one in found.errors]


def test_nothing_is_wrong() -> None:
    found = check.check("n1", info(), SETTINGS)
    assert (found.errors, found.warnings) == ([], [])


@pytest.mark.parametrize(("system", "good"), [
    ({"id": "rhel", "version": "9.4"}, True), ({"id": "debian", "version": "13"}, True),
    ({"id": "ubuntu", "version": "20.04"}, False), ({"id": "rocky", "version": "9.4"}, False), (None, False),
    ({"id": "rhel", "version": "8.10"}, False), ({"id": "ubuntu", "version": "24"}, False)])
def test_operating_systems(system: t.Any, good: bool) -> None:
    found = errors(os=system)
    assert (found == []) is good
    if not good:
        assert found[0][0] == "operating system"
        assert found[0][2] == "ubuntu 22.04, ubuntu 24.04, rhel 9, debian 13"


@pytest.mark.parametrize(("version", "good"), [("3.9.2", True), ("3.13.0", True), ("3.8.10", False), ("2.7", False)])
def test_python(version: str, good: bool) -> None:
    found = errors(python={"version": version, "executable": "/usr/bin/python"})
    assert (found == []) is good
    assert good or found == [("Python", f"{version} (/usr/bin/python)", "3.9 or newer")]


def test_become_that_gives_no_root() -> None:
    assert errors(uid=1000) == [("sudo", "user id 1000 after become", "root (0)")]


@pytest.mark.parametrize("value", ["uninitialized", None, "", "4A1C3E0F5B7D49D2A8C6E1F203948576"])
def test_machine_id(value: t.Any) -> None:
    assert errors(machine_id=value) == [("machine-id", str(value), "32 hexadecimal digits")]


@pytest.mark.parametrize(("offset", "errs", "warns"), [
    (0.04, 0, 0), (-0.06, 0, 1), (0.9, 0, 1), (-1.5, 1, 0), (300.0, 1, 0), (None, 0, 0)])
def test_offset(offset: float | None, errs: int, warns: int) -> None:
    found = check.check("n1", info(time={"source": "chrony", "synchronised": True, "offset_seconds": offset}), SETTINGS)
    assert (len(found.errors), len(found.warnings)) == (errs, warns)


@pytest.mark.parametrize("clock", [
    {"source": "chrony", "synchronised": False, "offset_seconds": None},
    {"source": None, "synchronised": None, "offset_seconds": None}, {}])
def test_a_clock_that_nobody_sets(clock: dict[str, t.Any]) -> None:
    assert [item[::2] for item in errors(time=clock)] == [("clock", "a synchronised clock")]
    found = check.check("n1", info(time=clock), Settings(SETTINGS.supported_os, require_time_sync=False))
    assert (found.errors, len(found.warnings)) == ([], 1), "still said"


def test_an_offset_is_an_error_where_synchronisation_is_not_asked_for() -> None:
    settings = Settings(SETTINGS.supported_os, require_time_sync=False)
    assert len(errors(settings, time={"source": "chrony", "synchronised": True, "offset_seconds": 2.0})) == 1


def names(addresses: t.Any, reverse: t.Any = None, fqdn: str = "n1") -> dict[str, t.Any]:
    return {"addresses": addresses, "fqdn": fqdn, "reverse": reverse}


@pytest.mark.parametrize(("value", "odd", "got"), [
    (names([]), "addresses of n1", "none"),
    (names(["127.0.1.1"]), "addresses of n1", "127.0.1.1"),
    (names(["198.51.100.9"], {"198.51.100.9": ["n1"]}), "addresses of n1", "198.51.100.9"),
    (names(["192.0.2.1"], {"192.0.2.1": []}), "name of 192.0.2.1", "none"),
    (names(["192.0.2.1"], {"192.0.2.1": ["old.example.com"]}), "name of 192.0.2.1", "old.example.com"),
    (names(None), "name resolution", "not known"),
])
def test_names(value: dict[str, t.Any], odd: str, got: str) -> None:
    assert [item[:2] for item in errors(names=value)] == [(odd, got)]
    assert errors(Settings(SETTINGS.supported_os, require_names=False), names=value) == []


def test_an_answer_of_nss_myhostname_is_a_warning() -> None:
    value = names(["192.0.2.1", "fe80::ff:fe00:11%eth0"], {"192.0.2.1": ["n1"]})
    found = check.check("n1", info(names=value), SETTINGS)
    assert found.errors == [] and "nss-myhostname" in found.warnings[0].hint


@pytest.mark.parametrize("host", ["n1", "n1.example.com", "192.0.2.1"])
def test_names_that_an_inventory_may_use(host: str) -> None:
    assert errors(host=host) == []


def test_a_host_that_is_called_something_else() -> None:
    assert errors(host="n2") == [("hostname", "n1", "n2")]


def test_disks() -> None:
    disks = [{"path": "/", "free_bytes": 2 * GIB, "inodes": 1000, "free_inodes": 10},
             {"path": "/var", "free_bytes": 9 * GIB, "inodes": 0, "free_inodes": 0}]
    assert errors(disks=disks) == [("free space of /", "2.00 GiB", "5 GiB"), ("free inodes of /", "10 of 1000", "5 %")]


@pytest.mark.parametrize(("result", "odd", "got"), [
    ({"unreachable": True, "msg": "Connection timed out"}, "host", "unreachable: Connection timed out"),
    ({"failed": True, "msg": "Task failed: Missing sudo password"}, "sudo", "Task failed: Missing sudo password"),
    ({"failed": True, "msg": "MODULE FAILURE\nSee stdout"}, "host_info", "MODULE FAILURE See stdout"),
    (None, "host", "no result of host_info"), ({}, "host_info", "no message")])
def test_a_host_that_gave_no_answer(result: t.Any, odd: str, got: str) -> None:
    found = check.check("n1", result, SETTINGS)
    assert [(one.object, one.got) for one in found.errors] == [(odd, got)]


def test_a_result_of_another_shape_is_no_crash() -> None:
    found = check.check("n1", {"os": 1, "names": 2, "netdevs": "x", "disks": None, "time": [], "why": None}, SETTINGS)
    assert {one.object for one in found.errors} >= {"operating system", "sudo", "clock", "name resolution"}


def test_twins() -> None:
    found = check.twins({"a": "x", "b": "y", "c": "x", "d": None, "e": None})
    assert {host: one.got for host, one in found.items()} == {"a": "x, that of c too", "c": "x, that of a too"}
