# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._net import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._net.plan import uses

from tests.unit.plugins.fake import FakeNode, failed, ok

CONNECTION = "PATH=/bin\0SSH_CONNECTION=192.0.2.254 45972 192.0.2.1 22\0"


def test_default_route_and_no_ssh(node: FakeNode) -> None:
    state = io.gather(node.machine())
    assert (state.default_devices, state.ssh_addresses, state.problems) == (("eth0",), (), ())


def test_the_connection_is_found_in_an_ancestor_although_become_dropped_it(node: FakeNode) -> None:
    node.put("/proc/30/environ", "PATH=/bin\0")
    node.put("/proc/30/status", "Name:\tpython3\nPPid:\t20\n")
    # 20 is sudo: its environment is not readable.
    node.put("/proc/20/status", "Name:\tsudo\nPPid:\t10\n")
    node.put("/proc/10/environ", CONNECTION)
    state = io.gather(dataclasses.replace(node.machine(), pid=30))
    assert state.ssh_addresses == ("192.0.2.1",)
    assert uses(state)["eth0"] == "carries the default route; carries the SSH connection (192.0.2.1)"


def test_a_chain_of_ancestors_is_bounded(node: FakeNode) -> None:
    node.put("/proc/30/status", "PPid:\t31\n")
    node.put("/proc/31/status", "PPid:\t30\n")
    assert io.gather(dataclasses.replace(node.machine(), pid=30)).ssh_addresses == ()


def test_without_an_ancestor_every_connection_of_sshd_counts(node: FakeNode) -> None:
    node.override[("ss",)] = lambda call: ok('0 0 198.51.100.1:22 198.51.100.9:4000 users:(("sshd",pid=1,fd=3))')
    assert uses(io.gather(node.machine()))["rail0"] == "carries the SSH connection (198.51.100.1)"


def test_without_ss(node: FakeNode) -> None:
    node.override[("ss",)] = lambda call: failed()
    assert io.gather(node.machine()).ssh_addresses == ()


def test_storage(node: FakeNode) -> None:
    node.put("/proc/self/mountinfo", "30 22 0:40 / /home rw - nfs4 s:/home rw,addr=198.51.100.50\n"
                                     "31 22 0:40 / /down rw - nfs4 s:/home rw,addr=198.51.100.51\n"
                                     "32 22 0:40 / /self rw - nfs4 s:/home rw,addr=127.0.0.1\n")
    node.put("/sys/class/nvme/nvme0/address", "traddr=203.0.113.60,trsvcid=4420\n")
    node.put("/sys/class/nvme/nvme1/address", "0000:01:00.0\n")
    devices = {"198.51.100.50": "rail0", "203.0.113.60": "rail1", "127.0.0.1": "lo"}
    node.override[("ip", "-j", "route", "get")] = lambda call: (
        ok(json.dumps([{"dst": call[-1], "dev": devices[call[-1]]}])) if call[-1] in devices else failed(2))
    found = uses(io.gather(node.machine()))
    assert found["rail0"] == "carries a network file system (server 198.51.100.50)"
    assert found["rail1"] == "carries a network file system (server 203.0.113.60)"
    assert "lo" not in found


def test_ip_missing_or_garbage_is_a_problem(node: FakeNode) -> None:
    node.override[("ip", "-d")] = lambda call: ok("garbage")
    node.override[("ip", "-j", "-6")] = lambda call: failed(255, "unknown option")
    problems = [problem.text() for problem in io.gather(node.machine()).problems]
    assert "ip -d -j addr show: got output that cannot be read" in problems[0]
    assert "exit status 255: unknown option" in problems[1]
