# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import typing as t
from dataclasses import replace

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health.model import CONFIG, PROGRAM, Options
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._healthunit import argspec, configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._healthunit.model import Request
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import FakeNode, ok

BYTES = b"#!/usr/bin/python3\nPK"
DIGEST = hashlib.sha256(BYTES).hexdigest()
WISH = Request(options=Options(gpus=4), digest=DIGEST, source="/tmp/sent.pyz")
SAID = '{"results": [{"check": "disk", "ok": true, "text": ""}], "failed": {}, "action": "none"}'


@pytest.fixture
def host(node: FakeNode) -> FakeNode:
    (node.root / "tmp").mkdir()
    (node.root / "tmp" / "sent.pyz").write_bytes(BYTES)
    node.override[(PROGRAM, "check")] = lambda call: ok(SAID)
    return node


def call(host: FakeNode, request: Request) -> dict[str, t.Any]:
    predicted = configure.configure(host.machine(), request, True)
    result = configure.configure(host.machine(), request, False)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == result[key], key
    assert configure.configure(host.machine(), request, False)["changed"] is False
    return result


def test_install_change_remove(host: FakeNode) -> None:
    result = call(host, WISH)
    assert result["commands"] == [["write", CONFIG], ["write", PROGRAM]] and result["health"]["failed"] == {}
    assert (host.root / PROGRAM.lstrip("/")).read_bytes() == BYTES and result["after"][PROGRAM]["mode"] == "0755"
    changed = call(host, replace(WISH, options=Options(gpus=8)))
    assert changed["commands"] == [["write", CONFIG]] and changed["steps"][0]["why"] == "it differs"
    (host.root / PROGRAM.lstrip("/")).chmod(0o644)
    assert call(host, replace(WISH, options=Options(gpus=8)))["steps"][0]["why"] == "its mode is 0644"
    assert call(host, Request("absent"))["commands"] == [["remove", PROGRAM], ["remove", CONFIG]]


def test_the_bytes_are_asked_for_only_where_they_are_needed(host: FakeNode) -> None:
    asked = configure.configure(host.machine(), replace(WISH, source=""), False)
    assert asked == {"changed": False, "needs_source": True, "commands": []} and PROGRAM.lstrip("/") not in host.files()
    call(host, WISH)
    assert configure.configure(host.machine(), replace(WISH, source=""), False)["changed"] is False


@pytest.mark.parametrize(("answer", "words"), [
    (Result((), "failed", 3, "", "aidc-health: no options"), "exit status 3"), (ok("garbage"), "cannot be read"),
    (Result((), "timeout", None, "", "no answer within 60 s"), "no answer within")])
def test_a_program_that_cannot_tell(host: FakeNode, answer: Result, words: str) -> None:
    host.override[(PROGRAM, "check")] = lambda call: answer
    result = configure.configure(host.machine(), WISH, False)
    assert result["changed"] and result["health"] is None and words in result["health_why"]


def test_past_the_action_plugin(host: FakeNode) -> None:
    with pytest.raises(AidcError, match="call the module by its full name"):
        configure.configure(host.machine(), Request(), False)


def test_a_write_that_fails(host: FakeNode) -> None:
    (host.root / "tmp" / "sent.pyz").unlink()
    with pytest.raises(AidcError, match="wanted write to succeed") as caught:
        configure.configure(host.machine(), WISH, False)
    assert caught.value.done == [["write", CONFIG]]


def test_options() -> None:
    params: dict[str, t.Any] = {name: one.get("default") for name, one in argspec.spec().items()}
    assert argspec.request(params).options == Options()
    with pytest.raises(AidcError, match="pass_after: 0, wanted 1 to 100"):
        argspec.request({**params, "pass_after": 0})
