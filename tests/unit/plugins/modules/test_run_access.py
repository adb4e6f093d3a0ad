# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.modules import run_access

RUN = f"module-{os.getpid()}"
Call = t.Callable[..., t.Any]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setattr(processes, "MARK_VARIABLE", f"AIDC_UNIT_TEST_{os.getpid()}")
    monkeypatch.setattr(run_access, "Store", lambda authorized_keys: Store(tmp_path))

    def run(code: int = 0, **options: t.Any) -> t.Any:
        with patch_module_args(options), pytest.raises(SystemExit) as ended:
            run_access.main()
        assert ended.value.code == code
        return json.loads(capsys.readouterr().out)

    return run


def test_a_whole_run_is_no_change_and_leaves_nothing(call: Call, tmp_path: Path) -> None:
    made = call(state="made", run_id=RUN, head="node1", address="127.0.0.1")
    let_in = call(
        state="authorized",
        run_id=RUN,
        head="node1",
        public_key=made["public_key"],
        from_addresses=made["addresses"],
        host_keys=["ssh-ed25519 AAAA"],
    )
    gone = call(state="absent", run_id=RUN)
    assert not any(result["changed"] for result in (made, let_in, gone))
    assert made["commands"][0][0] == "ssh-keygen" and made["run_id"] == RUN
    assert let_in["host_keys"] == ["ssh-ed25519 AAAA"] and let_in["after"]["authorized_runs"] == [RUN]
    assert gone["after"] == {"runs": [], "authorized_runs": [], "processes": 0} and gone["swept_runs"] == []
    assert (tmp_path / ".ssh/authorized_keys").read_bytes() == b""
    assert "PRIVATE KEY" not in json.dumps([made, let_in, gone])


def test_check_mode_makes_nothing(call: Call, tmp_path: Path) -> None:
    result = call(state="made", run_id=RUN, head="node1", address="127.0.0.1", _ansible_check_mode=True)
    assert result["run_id"] == RUN and "public_key" not in result
    assert list(tmp_path.iterdir()) == []


def test_an_error_names_object_got_and_wanted(call: Call) -> None:
    result = call(1, state="made", run_id=RUN, head="node1", address="no-such-name.invalid")
    assert result["failed"] and result["changed"] is False and result["run_id"] == RUN
    assert "address: got 'no-such-name.invalid', wanted" in result["msg"]


@pytest.mark.parametrize(
    "options",
    [
        {"state": "made"},
        {"state": "absent"},
        {"state": "authorized", "run_id": RUN, "head": "node1"},
        {"state": "present"},
    ],
)
def test_what_a_state_needs_must_be_given(call: Call, options: dict[str, t.Any]) -> None:
    assert call(1, **options)["failed"]
