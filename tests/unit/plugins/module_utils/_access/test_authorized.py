# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import authorized

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPrHnUiYtVdXlBLLLqqGhmWnhj8cjdrWFOw"
# What others may have there: no line end, CRLF, no UTF-8, blank lines, lines that look a little like ours.
FOREIGN = [
    b"",
    b"ssh-rsa AAAA alice\n",
    b"ssh-rsa AAAA alice",
    b"# comment\r\n\r\nssh-rsa AAAA bob\r\n",
    b"\n\n",
    b"ssh-rsa AAAA M\xfcller\n\xff\xfe\n",
    b"ssh-ed25519 AAAA aidc-run=not-ours\n",
    b"restrict ssh-ed25519 AAAA aidc-run=not ours\n",
    b"#restrict,from=\"192.0.2.1\" ssh-ed25519 AAAA aidc-run=abc\n",
]


def test_line_is_bound_to_address_time_and_run() -> None:
    line = authorized.line(KEY, "pool-1", ["192.0.2.1", "198.51.100.1"], 1_800_000_000.0)
    expiry = time.strftime("%Y%m%d%H%M%S", time.localtime(1_800_000_000))
    assert line.decode() == (
        f'restrict,from="192.0.2.1,198.51.100.1",expiry-time="{expiry}",'
        f'command="/usr/bin/env AIDC_NCCL_RUN_ID=pool-1 /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"" {KEY} aidc-run=pool-1'
    )
    assert authorized.run_of(line) == "pool-1"


@pytest.mark.parametrize("text", FOREIGN)
def test_adding_and_removing_gives_the_file_back(text: bytes) -> None:
    line = authorized.line(KEY, "pool-1", ["192.0.2.1"], 0.0)
    added = authorized.edit(text, set(), line)
    assert added.split(b"\n")[0] == line
    assert added.endswith(text)
    assert authorized.runs_of(added) == ["pool-1"]
    assert authorized.edit(added, {"pool-1"}) == text


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_lines_are_not_ours(text: bytes) -> None:
    assert authorized.runs_of(text) == []
    assert authorized.edit(text, {"not-ours", "abc", "not ours"}) == text


def test_only_the_named_runs_go() -> None:
    one, two = (authorized.line(KEY, run, ["192.0.2.1"], 0.0) for run in ("run-1", "run-2"))
    text = b"ssh-rsa AAAA a\n" + one + b"\nssh-rsa AAAA b\n" + two + b"\n"
    assert authorized.edit(text, {"run-1"}) == b"ssh-rsa AAAA a\nssh-rsa AAAA b\n" + two + b"\n"
    assert authorized.edit(text, {"run-1", "run-2"}) == b"ssh-rsa AAAA a\nssh-rsa AAAA b\n"
    # A second authorization of the same run replaces the first.
    new = authorized.line(KEY, "run-1", ["192.0.2.9"], 0.0)
    assert authorized.runs_of(authorized.edit(text, {"run-1"}, new)) == ["run-1", "run-2"]


@pytest.mark.parametrize("key", ["", "ssh-ed25519", f"{KEY} comment", f"{KEY}\n", f"{KEY}\nssh-rsa AAAA",
                                 'ssh-rsa A"A', "evil AAAA"])
def test_public_key_pattern_takes_one_key_only(key: str) -> None:
    assert not authorized.PUBLIC_KEY.fullmatch(key)
    assert authorized.PUBLIC_KEY.fullmatch(KEY)
