# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._bootunit import configure as whole
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._bootunit import io, model
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._bootunit.model import (
    PENDING_FILE,
    RULE,
    SERVICE,
    TEMPLATE,
    TOOL,
    UNIT,
    Request,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import GOOD_PATH, PATH, Intent

from tests.unit.plugins.fake import FakeNode, failed, ok

BYTES = b"#!/usr/bin/python3\nPK\x03\x04\xff the tool"
DIGEST = hashlib.sha256(BYTES).hexdigest()
WRITES = [["write", path] for path in (TOOL, SERVICE, TEMPLATE, RULE)]
RELOADS = [["systemctl", "daemon-reload"], ["udevadm", "control", "--reload"], ["remove", PENDING_FILE]]
FIRST = [["write", PENDING_FILE], *WRITES, *RELOADS, ["systemctl", "enable", UNIT]]


class Host:
    """A node with systemd, and with the tool once it is written."""

    def __init__(self, node: FakeNode, tmp_path: Path) -> None:
        self.node, self.enabled, self.answer = node, "not-found", ok('{"drift": []}')
        self.source = tmp_path / "sent"
        self.source.write_bytes(BYTES)
        node.override[("systemctl", "is-enabled", UNIT)] = lambda call: Result(
            call, "ok" if self.enabled == "enabled" else "failed", int(self.enabled != "enabled"), f"{self.enabled}\n")
        node.override[("systemctl", "enable", UNIT)] = lambda call: self._set("enabled")
        node.override[("systemctl", "disable", UNIT)] = lambda call: self._set("disabled")
        node.override[("systemctl", "daemon-reload")] = lambda call: ok()
        node.override[("udevadm", "control", "--reload")] = lambda call: ok()
        node.override[("/usr/bin/python3", TOOL, "--check", "--json")] = lambda call: self.answer

    def _set(self, word: str) -> Result:
        self.enabled = word
        return ok()

    def call(self, check_mode: bool = False, with_source: bool = True, **options: t.Any) -> dict[str, t.Any]:
        # Machine.path puts the source below the root, too.
        source = str(self.source.relative_to(self.node.root)) if with_source else ""
        request = Request(**{"digest": DIGEST, "source": source, **options})
        return whole.configure(self.node.machine(), request, check_mode)


@pytest.fixture
def host(node: FakeNode, tmp_path: Path) -> Host:
    return Host(node, tmp_path)


def test_check_mode_then_run_then_nothing(host: Host) -> None:
    predicted = host.call(check_mode=True, with_source=False)
    assert host.node.files() == {path: text for path, text in host.node.files().items() if "aidc" not in path}
    assert (predicted["drift"], predicted["drift_why"]) == (None, f"{TOOL} is not there")
    real = host.call()
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key
    assert real["commands"] == FIRST and real["enabled"] is True and real["drift"] == []
    assert (host.node.root / TOOL[1:]).read_bytes() == BYTES
    assert (host.node.root / TOOL[1:]).stat().st_mode & 0o777 == 0o755
    again = host.call(with_source=False)
    assert (again["changed"], again["commands"]) == (False, [])


def test_the_bytes_are_asked_for_only_if_they_are_needed(host: Host) -> None:
    assert host.call(with_source=False) == {"changed": False, "needs_source": True, "commands": []}
    assert not (host.node.root / SERVICE[1:]).exists()
    host.call()
    (host.node.root / SERVICE[1:]).unlink()
    assert host.call(with_source=False)["commands"][1] == ["write", SERVICE]


def test_what_the_units_and_the_rule_say() -> None:
    texts = Request().texts
    assert "RemainAfterExit=yes" in texts[SERVICE] and "RemainAfterExit" not in texts[TEMPLATE]
    assert "After=openibd.service" in texts[SERVICE] and "WantedBy=multi-user.target" in texts[SERVICE]
    assert f"ExecStart=/usr/bin/python3 {TOOL} apply --reason udev:%i\n" in texts[TEMPLATE]
    assert texts[RULE].splitlines()[1] == (
        'SUBSYSTEM=="net", ACTION=="add|move", DRIVERS=="mlx5_core", TAG+="systemd", '
        'ENV{SYSTEMD_WANTS}+="aidc-fabric@$name.service"')
    assert "RUN" not in texts[RULE] and all(text.startswith(model.HEADER) for text in texts.values())


@pytest.mark.parametrize(("path", "commands"), [
    (TOOL, [["write", TOOL]]),
    (SERVICE, [["write", PENDING_FILE], ["write", SERVICE], RELOADS[0], RELOADS[2]]),
    (RULE, [["write", PENDING_FILE], ["write", RULE], RELOADS[1], RELOADS[2]]),
])
def test_a_file_that_was_changed_is_put_back_alone(host: Host, path: str, commands: list[list[str]]) -> None:
    host.call()
    host.node.put(path, f"{model.HEADER}\nelse")
    assert host.call()["commands"] == commands
    (host.node.root / path[1:]).chmod(0o600)
    assert host.call()["commands"] == commands


def test_a_tool_that_was_disabled_is_enabled(host: Host) -> None:
    host.call()
    host.enabled = "disabled"
    told = host.call(check_mode=True)
    assert told["commands"] == [["systemctl", "enable", UNIT]] and told["enabled"] is False
    assert told["steps"][0]["why"] == "it is disabled"
    assert host.call()["enabled"] is True


def test_a_run_that_was_killed_before_the_reload_is_completed(host: Host) -> None:
    host.call()
    host.node.put(PENDING_FILE, "")
    assert host.call()["commands"] == RELOADS
    assert host.call()["commands"] == []


@pytest.mark.parametrize("killed", range(len(FIRST)))
def test_killed_between_any_two_steps_the_next_run_converges(
    host: Host, monkeypatch: pytest.MonkeyPatch, killed: int
) -> None:
    steps, real = [0], io._carry_out

    def until(*arguments: t.Any) -> t.Any:
        if steps[0] == killed:
            raise KeyboardInterrupt
        steps[0] += 1
        return real(*arguments)

    monkeypatch.setattr(io, "_carry_out", until)
    with pytest.raises(KeyboardInterrupt):
        host.call()
    monkeypatch.setattr(io, "_carry_out", real)
    host.call()
    assert host.call()["commands"] == [] and host.enabled == "enabled"
    assert not (host.node.root / PENDING_FILE[1:]).exists()


@pytest.mark.parametrize(("change", "text"), [
    (lambda host: host.node.put(RULE, "# somebody's\n"), f"{RULE}: got a file that is not ours"),
    (lambda host: setattr(host, "enabled", "masked"), "systemctl unmask aidc-fabric.service"),
])
def test_what_stands_in_the_way_is_named(host: Host, change: t.Callable[[Host], None], text: str) -> None:
    change(host)
    for check_mode in (True, False):
        with pytest.raises(AidcError) as caught:
            host.call(check_mode)
        assert text in str(caught.value) and "Nothing was changed." in str(caught.value)


def test_without_systemd(host: Host) -> None:
    host.node.override[("systemctl", "is-enabled", UNIT)] = lambda call: Result(call, "missing")
    with pytest.raises(AidcError, match="the boot tool needs systemd"):
        host.call()


def test_a_tool_that_lies_is_told(host: Host) -> None:
    host.node.override[("systemctl", "enable", UNIT)] = lambda call: ok()
    with pytest.raises(AidcError, match="got not-found, wanted enabled"):
        host.call()


def test_a_tool_that_fails_is_told_with_what_was_done(host: Host) -> None:
    host.node.override[("systemctl", "daemon-reload")] = lambda call: failed(1, "no")
    with pytest.raises(AidcError) as caught:
        host.call()
    assert caught.value.done == FIRST[:5] and "systemctl daemon-reload: got exit status 1: no" in str(caught.value)


DRIFT: dict[str, t.Any] = {"section": "roce_qos", "port": None, "what": "pfc is []", "command": []}


@pytest.mark.parametrize(("answer", "drift", "why"), [
    (Result((), "failed", 2, json.dumps({"drift": [DRIFT]})), [DRIFT], None),
    (Result((), "failed", 3, "", "got no file"), None, "exit status 3: got no file"),
    (Result((), "failed", 1, "", "Traceback"), None, "exit status 1: Traceback"),
    (Result((), "timeout", None, "", "no answer within 120 s"), None, "no answer within 120 s"),
    (ok("nonsense"), None, f"{TOOL} --check: got output that cannot be read: nonsense"),
    (ok("[]"), None, f"{TOOL} --check: got output that cannot be read: []"),
])
def test_what_the_tool_says(host: Host, answer: Result, drift: t.Any, why: str | None) -> None:
    host.answer = answer
    result = host.call()
    assert (result["drift"], result["drift_why"]) == (drift, why)
    assert host.call(check_drift=False)["drift"] is None


def test_times_of_the_intents(host: Host) -> None:
    host.node.put(PATH, Intent({}, None, "2026-01-02T03:04:05Z").text())
    host.node.put(GOOD_PATH, "{")
    result = host.call()
    assert (result["intent_time"], result["good_time"]) == ("2026-01-02T03:04:05Z", None)


def test_absent(host: Host) -> None:
    host.call()
    host.node.put(PATH, Intent().text())
    predicted = host.call(check_mode=True, state="absent")
    real = host.call(state="absent")
    assert real["commands"] == predicted["commands"] == [
        ["systemctl", "disable", UNIT], ["write", PENDING_FILE],
        *(["remove", path] for path in (RULE, TEMPLATE, SERVICE, TOOL)), *RELOADS]
    assert real["after"] == predicted["after"] == {"files": {}, "enabled": False}
    assert host.node.get(PATH) != "" and host.call(state="absent")["commands"] == []


def test_a_file_that_may_not_be_read(host: Host) -> None:
    (host.node.root / RULE[1:]).mkdir(parents=True)
    with pytest.raises(AidcError, match="Is a directory"):
        host.call()
