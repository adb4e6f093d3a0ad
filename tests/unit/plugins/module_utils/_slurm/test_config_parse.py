# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.config_parse import ConfError, lines


def pairs(text: str) -> list[tuple[int, dict[str, str]]]:
    return [(line.number, dict(line.pairs)) for line in lines(text)]


@pytest.mark.parametrize(("text", "found"), [
    ("", []),
    ("# all\n\n  \n", []),
    ("A=1\n b = 2 # end\n", [(1, {"a": "1"}), (2, {"b": "2"})]),
    ("NodeName=a[1-2] Feature=x,y State=UNKNOWN\n",
     [(1, {"nodename": "a[1-2]", "feature": "x,y", "state": "UNKNOWN"})]),
    ('A="with spaces" B=2\n', [(1, {"a": "with spaces", "b": "2"})]),
    ("A=1 \\\n B=2\nC=3\n", [(1, {"a": "1", "b": "2"}), (3, {"c": "3"})]),
    ("A=1 \\\n B=2 \\", [(1, {"a": "1", "b": "2"})]),
    ("Include nodes.conf\n", [(1, {"include": "nodes.conf"})]),
    ("Nodes+=n3\n", [(1, {"nodes": "n3"})]),
    ("Prolog=/etc/slurm/a\\#b\n", [(1, {"prolog": "/etc/slurm/a\\#b"})]),
])
def test_lines(text: str, found: list[tuple[int, dict[str, str]]]) -> None:
    assert pairs(text) == found


@pytest.mark.parametrize("text", ["A\n", "A=1 B\n", "=1\n", "<html>\n", "A=\n"])
def test_what_is_no_line(text: str) -> None:
    with pytest.raises(ConfError, match="line 1: got"):
        lines(text)
