# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import record
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.record import RecordError


@pytest.mark.parametrize("name", ["gb200-1", "node.example", "2001:db8::1", "user@host", "_x"])
def test_names_that_can_be_files(name: str) -> None:
    assert record.check_name(name, "host name") == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "-rf", "a/b", "../up", "a\nb", "a\n", "a\0b", "ä", "x" * 201, "a b"])
def test_names_that_cannot(name: str) -> None:
    with pytest.raises(RecordError, match="host name .* cannot be a file name"):
        record.check_name(name, "host name")


GOOD = record.build("mlx5_info", "h1", "2024-05-01T10:00:00Z", None, {"devices": []})


def test_a_good_record() -> None:
    assert record.check(GOOD, "mlx5_info", "h1") is GOOD
    assert GOOD == {"schema_version": 1, "kind": "mlx5_info", "host": "h1", "time": "2024-05-01T10:00:00Z",
                    "run_id": None, "data": {"devices": []}}


@pytest.mark.parametrize(("value", "message"), [
    ([], "got list, wanted an object"),
    ({**GOOD, "schema_version": 2}, "schema_version: got 2, wanted 1"),
    ({**GOOD, "host": "h2"}, "host: got 'h2', wanted 'h1'"),
    ({**GOOD, "kind": "gpu_info"}, "kind: got 'gpu_info', wanted 'mlx5_info'"),
    ({**GOOD, "data": None}, "data: got NoneType, wanted an object"),
])
def test_bad_records(value: object, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        record.check(value, "mlx5_info", "h1")
