# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import getpass
import json
import os
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import munge_key

from tests.unit.plugins.fake import FakeNode

PATH = "/etc/munge/munge.key"
KEY = bytes(range(128))
TEXT = base64.b64encode(KEY).decode("ascii")


@pytest.fixture
def call(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> t.Callable[..., t.Any]:
    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(munge_key, "Machine", node.machine)
        with patch_module_args({"owner": getpass.getuser(), **options}), pytest.raises(SystemExit):
            munge_key.main()
        said = capsys.readouterr().out
        assert TEXT not in said
        return json.loads(said)

    return run


def test_a_key_is_made_once(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    assert call(_ansible_check_mode=True)["commands"] == [["write", PATH]]
    assert not node.machine().path(PATH).exists()
    made = call(reveal=True)
    file = node.machine().path(PATH)
    assert made["changed"] and base64.b64decode(made["content"]) == file.read_bytes() and len(file.read_bytes()) == 128
    assert file.stat().st_mode & 0o777 == 0o400
    again = call(reveal=True)
    assert (again["changed"], again["content"]) == (False, made["content"])
    assert "content" not in call()


def test_the_key_that_is_handed_over(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    file = node.machine().path(PATH)
    call()
    predicted = call(content=TEXT, _ansible_check_mode=True)
    real = call(content=TEXT)
    assert {**predicted, "invocation": None} == {**real, "invocation": None}
    assert file.read_bytes() == KEY and real["before"]["fingerprint"] != real["after"]["fingerprint"]
    assert call(content=TEXT)["changed"] is False
    # What a run that was killed between replacement and owner left, or somebody's chmod.
    file.chmod(0o644)
    assert call(content=TEXT)["before"]["mode"] == "0644"
    assert call(content=TEXT)["changed"] is False


def test_a_key_that_munged_would_refuse_is_made_anew(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    node.put(PATH, "short")
    assert call()["changed"] and len(node.machine().path(PATH).read_bytes()) == 128


@pytest.mark.parametrize(("options", "words"), [
    ({"content": "no base64!"}, "content: got text that is no base64"),
    ({"content": base64.b64encode(b"short").decode()}, "content: got a key of 5 bytes, wanted 32 to 1024 bytes"),
    ({"owner": "nobody-has-this"}, "user nobody-has-this: got no such user"),
])
def test_what_cannot_be_done(call: t.Callable[..., t.Any], node: FakeNode, options: dict[str, str], words: str) -> None:
    failed = call(**options)
    assert failed["msg"].startswith(words) and failed["msg"].endswith("Nothing was changed.")
    assert not node.machine().path(PATH).exists()


def test_a_daemon_that_is_older_than_its_key(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    assert call()["daemon"] == "absent"
    node.put("/run/munge/munged.pid", "1")
    os.utime(node.machine().path("/run/munge/munged.pid"), (1, 1))
    assert call()["daemon"] == "old"
    os.utime(node.machine().path("/run/munge/munged.pid"), (4e9, 4e9))
    assert call()["daemon"] == "current"
    assert call(content=TEXT, _ansible_check_mode=True)["daemon"] == "old"


def test_a_folder_that_cannot_be_written(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    node.put("/etc/munge", "a file")
    assert "Nothing was changed" in call()["msg"]
