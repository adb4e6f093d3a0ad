# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import check

from . import fleet

FILES = fleet.render(fleet.prod(l40s=16, epyc=16)).files


def findings(files: dict[str, str]) -> list[str]:
    return [finding.text() for finding in check.texts(files)]


def test_what_is_rendered_agrees() -> None:
    assert findings(FILES) == []


# (file, text, another text, the only finding)
BREAKS = [
    ("slurm.conf", "Gres=gpu:l40s:4", "Gres=gpu:l40s:8",
     "GPUs of l40s-[01-16]: got 4 in gres.conf, wanted 8, as NodeName says (Slurm marks such a node invalid)"),
    ("slurm.conf", "Gres=gpu:l40s:4 ", "",
     "GPUs of l40s-[01-16]: got 4 in gres.conf, wanted 0, as NodeName says (Slurm marks such a node invalid)"),
    ("gres.conf", "NodeName=l40s-[01-16] Name=gpu Type=l40s File=/dev/nvidia[2-3] Cores=32-63\n", "",
     "GPUs of l40s-[01-16]: got 2 in gres.conf, wanted 4, as NodeName says (Slurm marks such a node invalid)"),
    ("gres.conf", "Cores=32-63", "Cores=64-127",
     "gres.conf, line 6: got Cores=64-127 for l40s-[01-16], wanted 0 to 63 (the number of a core, not of a thread)"),
    ("gres.conf", "Cores=32-63", "Cores=all", "gres.conf, line 6: got Cores=all, wanted numbers such as 0-71"),
    ("slurm.conf", "Nodes=epyc-[01-16] Default", "Nodes=epyc-[01-17] Default",
     "partition cpu: got epyc-17, wanted nodes with a NodeName line"),
    ("slurm.conf", "Nodes=epyc-[01-16] Default", "Nodes=epyc-[01-16,3-2] Default",
     "slurm.conf, line 60: got 'epyc-[01-16,3-2]': got the range 3-2, wanted its smaller number first, wanted a "
     "host list"),
    ("slurm.conf", "Nodes=epyc-[01-16] Default", "Nodes=epyc-[01-16,05] Default",
     "partition cpu: got a node twice, wanted each node once"),
    ("slurm.conf", "NodeName=epyc-[01-16]", "NodeName=epyc-[01-16] NodeAddr=192.0.2.[1-3]",
     "slurm.conf, line 55: got 3 addresses for 16 nodes, wanted one for each"),
    ("slurm.conf", " RealMemory=770048", "",
     "slurm.conf, line 55: got no RealMemory, wanted MiB of memory (Slurm takes 1 MiB without it, and no job fits)"),
    ("topology.conf", "gb1-[01-18]", "gb1-[01-17]",
     "topology.conf: got not gb1-18, wanted every node (a node outside of it is never picked)"),
    ("topology.conf", "gb1-[01-18]", "gb1-[01-18],gb2-01",
     "topology.conf: got gb2-01 twice, wanted each node once"),
    ("topology.conf", "l40s-[01-16]", "l40s-[01-16],l40s-99",
     "topology.conf: got l40s-99, wanted nodes with a NodeName line"),
    ("topology.conf", "BlockSizes=16", "BlockSizes=17",
     "block l40s-1: got 16 nodes, wanted 17 or more, as BlockSizes says (slurmctld refuses a block that is smaller)"),
    ("topology.conf", "BlockSizes=16\n", "", "topology.conf: got no BlockSizes, wanted the base size of blocks"),
    ("slurm.conf", "AuthType=auth/munge", "AuthType=auth/munge\nPluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm",
     "slurm.conf: got /lib/x86_64-linux-gnu, wanted no path of one architecture in a file that all nodes share (leave "
     "PluginDir out; each build of Slurm knows its own)"),
    ("cgroup.conf", "ConstrainCores=yes", "ConstrainCores yes",
     "cgroup.conf: got line 3: got 'ConstrainCores yes', wanted Key=Value, wanted lines of Key=Value"),
]


@pytest.mark.parametrize(("name", "old", "new", "text"), BREAKS)
def test_each_break_is_found_and_nothing_else(name: str, old: str, new: str, text: str) -> None:
    assert old in FILES[name]
    found = findings({**FILES, name: FILES[name].replace(old, new, 1)})
    assert text in found
    # A smaller base size is too large for all blocks that are as small.
    assert all("block" in one for one in found if one != text)


@pytest.mark.parametrize(("old", "new", "text"), [
    ("gb1-[01-18]", "gb1-[01-19]", "topology.yaml: got gb1-19, wanted nodes with a NodeName line"),
    ("gb1-[01-18]", "gb1-[01-18],gb1-01", "topology.yaml: got gb1-01 twice, wanted each node once"),
    ("gb1-[01-18]", "gb1-[01-18",
     "topology.yaml: got 'gb1-[01-18': got a bracket that is not closed, wanted a host list"),
])
def test_topology_yaml(old: str, new: str, text: str) -> None:
    files = fleet.render(version="25.05").files
    assert findings({**files, "topology.yaml": files["topology.yaml"].replace(old, new)}) == [text]


def test_a_node_twice() -> None:
    text = FILES["slurm.conf"] + "NodeName=epyc-07 RealMemory=1000\n"
    assert findings({**FILES, "slurm.conf": text})[0] == "NodeName epyc-07: got two lines, wanted one"


@pytest.mark.parametrize("files", [
    {}, {"cgroup.conf": "CgroupPlugin=disabled\n"}, {"gres.conf": FILES["gres.conf"]},
    {"slurm.conf": "ClusterName=x\nInclude nodes.conf\n"}, {"topology.conf": FILES["topology.conf"]},
])
def test_files_of_others_are_not_judged_without_their_nodes(files: dict[str, str]) -> None:
    assert findings(files) == []


def test_forms_that_slurm_reads_too() -> None:
    text = ("nodename=DEFAULT realmemory=1000\nNodeName=a[1-2] SocketsPerBoard=1 \\\n"
            " CoresPerSocket=4 RealMemory=1000 # x\n"
            "PartitionName=DEFAULT Nodes=ALL\nPartitionName=p Nodes=ALL\n")
    assert findings({"slurm.conf": text}) == []
