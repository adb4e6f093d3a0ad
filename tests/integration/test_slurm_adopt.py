# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that somebody has set up by hand gets our nodes by include files; nothing else of it changes.

All is read by Slurm's own commands. Tests are in their order.
"""
from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from tests.integration.slurm_hosts import CTL, GB200, NODES, bare_hosts, messages, out, slurm, starts, states, wait
from tests.lab_plugin import Lab, Labs, Play

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow

OLD = "sl1"
HOSTS = (CTL, OLD, *GB200)
INCLUDES = "Include aidc-nodes.conf\nInclude aidc-partitions.conf\n"
# As a site would write it, with its own names and habits. Lab hosts have no cgroups to give.
SITE = f"""\
ClusterName=legacy
SlurmctldHost={CTL}
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/spool/site-state
SlurmdSpoolDir=/var/spool/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=64
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=1
NodeName={OLD} CPUs=4 RealMemory=4096
PartitionName=old Nodes={OLD} Default=YES
"""
WRITTEN = ("slurm.conf", "gres.conf", "cgroup.conf")


def put(lab: Lab, host: str, path: str, text: str) -> None:
    lab.inside(host, "sh", "-c", f"printf %s {shlex.quote(text)} > {path}")


def by_hand(lab: Lab) -> None:
    for host in HOSTS:
        # Nothing starts before its files are there.
        lab.inside(host, "sh", "-ec", "printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; "
                   "chmod 755 /usr/sbin/policy-rc.d; export DEBIAN_FRONTEND=noninteractive; apt-get -q -y install "
                   f"{'slurmctld' if host == CTL else 'slurmd'} slurm-client munge; rm /usr/sbin/policy-rc.d; "
                   "mkdir -p /etc/slurm /var/spool/site-state /var/spool/slurmd; chown slurm: /var/spool/site-state; "
                   "printf 'the key of the old cluster, of forty bytes.' > /etc/munge/munge.key; "
                   "chown munge: /etc/munge/munge.key; chmod 400 /etc/munge/munge.key; systemctl restart munge")
        put(lab, host, "/etc/slurm/slurm.conf", SITE)
        put(lab, host, "/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
        put(lab, host, "/etc/slurm/gres.conf", "# none\n")
    lab.inside(CTL, "systemctl", "restart", "slurmctld")
    lab.inside(OLD, "systemctl", "restart", "slurmd")


def site_files(lab: Lab) -> dict[str, str]:
    names = [f"/etc/slurm/{name}" for name in WRITTEN] + ["/etc/munge/munge.key"]
    return {host: out(lab, host, "sh", "-c", f"sha256sum {' '.join(names)}; stat -c '%n %a %U %y' {' '.join(names)}; "
                      "ls /etc/systemd/system/*.d /etc/slurm") for host in HOSTS}


@pytest.fixture(scope="module")
def site(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with bare_hosts(labs, tmp_path_factory.mktemp("adopt"), GB200, "adopt") as lab:
        by_hand(lab)
        wait(lambda: states(lab), {OLD: "idle"})
        yield lab


def adopt(lab: Lab, *argv: str, code: int | None = 0) -> Play:
    return slurm(lab, *argv, "--limit", "slurm_controller,slurm_compute", code=code, slurm_ownership="include",
                 slurm_cluster_name="legacy", slurm_flavour="unmanaged", slurm_nccl_profile=False)


def test_our_parts_are_written_beside_the_sites_files_which_stay(site: Lab) -> None:
    """The site's slurm.conf does not include them yet, and the run says which lines it needs."""
    before, running = site_files(site), starts(site)
    out(site, CTL, "sbatch", "-J", "old", "-p", "old", "-o", "/dev/null", "--wrap", "sleep 100000")
    wait(lambda: out(site, CTL, "squeue", "-h", "-n", "old", "-o", "%T"), "RUNNING")
    told = messages(adopt(site, code=2))
    for home, lacking in (("slurm", "Include aidc-nodes.conf, Include aidc-partitions.conf"),
                        ("gres", "Include aidc-gres.conf")):
        assert f"/etc/slurm/{home}.conf: got a file of the site without {lacking}, wanted" in told
    after = site_files(site)
    for host in HOSTS:
        lines = [line for line in after[host].splitlines() if not line.startswith("aidc-")]
        assert lines == before[host].splitlines()
    assert starts(site) == running
    assert out(site, CTL, "squeue", "-h", "-n", "old", "-o", "%T") == "RUNNING"


def test_with_the_includes_the_nodes_are_in_the_cluster(site: Lab) -> None:
    for host in HOSTS:
        put(site, host, "/etc/slurm/slurm.conf", SITE + INCLUDES)
        put(site, host, "/etc/slurm/gres.conf", "Include aidc-gres.conf\n")
    # A host outside of our inventory reads the same slurm.conf: the site copies the parts to it.
    for name in ("aidc-nodes.conf", "aidc-partitions.conf", "aidc-gres.conf"):
        put(site, OLD, f"/etc/slurm/{name}", site.host(CTL).file(f"/etc/slurm/{name}").content_string)
    out(site, CTL, "systemctl", "restart", "slurmctld")
    adopt(site)
    wait(lambda: {host: states(site).get(host) for host in GB200}, dict.fromkeys(GB200, "idle"))
    said = out(site, CTL, "srun", "-p", "train", "-N2", "--gres=gpu:4", "printenv", "CUDA_VISIBLE_DEVICES")
    assert said.split() == ["0,1,2,3"] * 2
    assert out(site, CTL, "squeue", "-h", "-n", "old", "-o", "%T") == "RUNNING"
    assert out(site, CTL, "srun", "-p", "train", "-w", "sg1", "hostname") == "sg1"
    assert "legacy" in out(site, CTL, "scontrol", "show", "config")


def test_a_second_run_changes_nothing(site: Lab) -> None:
    before, running = site_files(site), starts(site)
    assert adopt(site).changed() == {}
    assert (site_files(site), starts(site)) == (before, running)
    assert NODES[2] == OLD and out(site, CTL, "squeue", "-h", "-n", "old", "-o", "%T") == "RUNNING"


def test_another_version_is_refused_before_any_file_changes(site: Lab) -> None:
    """As a host of Debian 12 (22.05) would be in a cluster of Debian 13's (24.11), the other way round."""
    before, running = site_files(site), starts(site)
    told = messages(slurm(site, "--limit", "sg1", code=2, slurm_ownership="include", slurm_flavour="unmanaged",
                          slurm_cluster_name="legacy", slurm_nccl_profile=False, slurm_version="22.05.8"))
    assert "sg1: got Slurm 24.11.5, wanted 22.05.x" in told and "Debian 12 has 22.05" in told
    assert (site_files(site), starts(site)) == (before, running)
