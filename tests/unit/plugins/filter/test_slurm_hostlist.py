# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter import slurm_hostlist, slurm_hostnames

compress = slurm_hostlist.FilterModule().filters()["slurm_hostlist"]
expand = slurm_hostnames.FilterModule().filters()["slurm_hostnames"]


def test_both_ways() -> None:
    names = ["gb1-01", "gb1-02", "login"]
    assert compress(names) == "gb1-[01-02],login"
    assert expand("gb1-[01-02],login") == names
    assert compress(["n2", "n10", "n1"], sort=True) == "n[1-2,10]"
    assert compress(name for name in names[:1]) == "gb1-01"


@pytest.mark.parametrize("value", ["gb1-01", 7, None, [1], [["a"]], ["a b"]])
@pytest.mark.parametrize("sort", [False, True])
def test_what_are_no_names(value: t.Any, sort: bool) -> None:
    with pytest.raises(AnsibleFilterError, match="slurm_hostlist: "):
        compress(value, sort)


@pytest.mark.parametrize("value", [["a"], 7, None, "a[1", "a[2-1]"])
def test_what_is_no_host_list(value: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="slurm_hostnames: "):
        expand(value)
