# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nccl-tests stand-in, compiled and run for real between three small hosts with shaped rails."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import cgroup as cgroups
from lab import image as images
from lab import layer
from lab.instance import cgroup_mount
from lab.standin import build
from lab.state import state_dir
from tests.integration.standin_hosts import HUNG, RATE, RATE_GBYTES, Hosts, Run, ip

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and mounts")

RANKS_PER_NODE, NODES, RAILS = 2, 3, 2
SHORT = ("-b", "256K", "-e", "256K", "-g", str(RANKS_PER_NODE), "-n", "1")
LONG = ("-b", "4M", "-e", "4M", "-g", str(RANKS_PER_NODE))
# nccl-tests v2.19.6, facts sample 33.
HEADING = (
    "#\n"
    "#                                                    "
    "          out-of-place                       in-place          \n"
    "#       size         count      type   redop    root "
    "    time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n"
    "#        (B)    (elements)                           "
    "    (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n")
ROW = re.compile(r" *\d+ +\d+     float     sum      -1(  [ .\d]{7}  [ .\d]{6}  [ .\d]{6}  [ .\d]{6}){2}$", re.M)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("standin")


@pytest.fixture(scope="module")
def cgroup() -> Iterator[Path]:
    path = cgroup_mount() / f"ringtest-{os.getpid()}"
    path.mkdir()
    yield path
    cgroups.kill(path)
    cgroups.remove(path)


@pytest.fixture(scope="module")
def image(cgroup: Path) -> Path:
    return images.ensure(state_dir(create=True) / "cache", cgroup, print)


@pytest.fixture(scope="module")
def standin(work: Path, image: Path, cgroup: Path) -> Path:
    return build.ensure(work / "cache", image, cgroup, print)


@pytest.fixture(scope="module")
def hosts(work: Path, image: Path, standin: Path, cgroup: Path) -> Iterator[Hosts]:
    # The image has no MPI; on a lab's hosts a role installs it.
    mpi = layer.ensure(image.parent, "mpi", (image,), layer.install("openmpi-bin"), cgroup, print)
    hosts = Hosts(work, f"{mpi}:{image}", standin, NODES, RAILS)
    try:
        hosts.up()
        yield hosts
    finally:
        hosts.down()


def mounts_with(text: str) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if text in line]


def test_build_leaves_the_programs_and_nothing_else(standin: Path, cgroup: Path, image: Path, work: Path) -> None:
    assert sorted(path.name for path in (standin / "bin").iterdir()) == sorted(build.PROGRAMS)
    assert sorted(path.name for path in (work / "cache").iterdir()) == \
        sorted([standin.name, "standin.lock", "standin.log"])
    assert mounts_with(str(work / "cache")) == []
    assert cgroups.pids(cgroup) == []
    start = time.monotonic()
    assert build.ensure(work / "cache", image, cgroup, print) == standin
    assert time.monotonic() - start < 0.5


def test_build_killed_leaves_no_process_and_no_mount(cgroup: Path, image: Path, tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from lab.standin import build; "
            "build.ensure(*map(Path, sys.argv[1:]), print)")
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(image), str(cgroup)],
                               stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while "apt-get" not in commands(cgroup) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "apt-get" in commands(cgroup)
    process.kill()
    process.wait()
    while cgroups.pids(cgroup) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cgroups.pids(cgroup) == []
    assert mounts_with(str(tmp_path)) == []
    part = next(tmp_path.glob("standin-*.part"))
    assert list((part / "layer").iterdir()) == []
    build.sweep(tmp_path)
    assert not part.exists()


def commands(cgroup: Path) -> set[str]:
    found = set()
    for pid in cgroups.pids(cgroup):
        try:
            found.add(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            continue
    return found


def test_busbw_is_the_rails_rate_and_the_kernels_count(hosts: Hosts) -> None:
    size, iterations = 1 << 20, 3
    before = [hosts.sent(host, rail) for host in hosts.names for rail in range(RAILS)]
    run = hosts.run(["-b", "1M", "-e", "1M", "-g", str(RANKS_PER_NODE), "-n", str(iterations), "-w", "1", "-c", "1"])
    after = [hosts.sent(host, rail) for host in hosts.names for rail in range(RAILS)]
    assert run.code == 0, run.out
    assert run.busbw() == pytest.approx([RAILS * RATE_GBYTES] * 2, rel=0.10)

    ranks = NODES * RANKS_PER_NODE
    collectives = 1 + 2 * (1 + iterations + 1)  # warm-up, and per placement: first, timed, checked
    each = 2 * (ranks - 1) / ranks * size / RAILS * collectives
    assert [b - a for a, b in zip(before, after, strict=True)] == pytest.approx([each] * len(before), rel=0.03)
    # What the kernel counted on a rail in the time printed is what busbw says.
    seconds = (float(run.rows()[0][5]) + float(run.rows()[0][9])) / 2 * 1e-6
    counted = RAILS * (after[0] - before[0]) / collectives / seconds / 1e9
    assert sum(run.busbw()) / 2 == pytest.approx(counted, rel=0.10)


def test_text_is_that_of_nccl_tests(hosts: Hosts) -> None:
    run = hosts.run(SHORT)
    lines = run.out.splitlines()
    assert lines[0] == "# SIMULATED: nccl-tests stand-in of the aidc.gpu_cluster lab, bytes over TCP, no GPU"
    assert lines[1:4] == [
        "# nccl-tests version 2.19.6 nccl-headers=22903 nccl-library=22903",
        "# Collective test starting: all_reduce_perf",
        "# nThread 1 nGpus 2 minBytes 262144 maxBytes 262144 step: 1048576(bytes) warmup iters: 1 iters: 1 "
        "agg iters: 1 validation: 1 graph: 0 unalign: 0"]
    devices = [re.sub(r"Pid +\d+", "Pid N", line) for line in lines if line.startswith("#  Rank ")]
    assert devices == [f"#  Rank {rank:2} Group  0 Pid N on {host:>10} device {rank % 2:2} [0000:1{rank % 2}:00] "
                       "SIMULATED (no GPU)" for rank, host in enumerate(["h1", "h1", "h2", "h2", "h3", "h3"])]
    assert HEADING in run.out
    assert ROW.search(run.out), run.out
    assert re.search(r"\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0\.0\d+ \n#\n"
                     r"# Collective test concluded: all_reduce_perf\n#\n\n$", run.out), run.out


def test_a_half_rate_rail_halves_the_busbw(hosts: Hosts) -> None:
    hosts.shape("h2", 1, "20mbit")
    try:
        run = hosts.run(["-b", "512K", "-e", "512K", "-g", str(RANKS_PER_NODE), "-n", "2"])
    finally:
        hosts.shape("h2", 1, RATE)
    assert run.code == 0, run.out
    assert run.busbw() == pytest.approx([RATE_GBYTES] * 2, rel=0.10)


@pytest.mark.parametrize("rank", [2, 3])  # the first passes on in memory, the second over the wire
def test_corrupt_bytes_are_counted(hosts: Hosts, rank: int) -> None:
    with hosts.corrupt("h2", rank):
        run = hosts.run(SHORT)
    assert run.code == 7, run.out
    assert all(float(run.rows()[0][at]) > 0 for at in (8, 12))
    assert f"# Out of bounds values : {2 * NODES} FAILED\n" in run.out
    assert run.out.count("Test failure common.cu:1454") >= 1


def interrupted(hosts: Hosts, number: signal.Signals, seconds: float, *more: str, **env: str) -> Run:
    start = time.monotonic()
    process = hosts.start([*LONG, *more], NCCL_DEBUG="WARN", **env)
    hosts.signal_rank("h2", number, after=0.5)
    return hosts.finish(process, start, seconds)


def test_a_killed_rank_ends_the_run(hosts: Hosts) -> None:
    run = interrupted(hosts, signal.SIGKILL, 20)
    assert run.code > 0
    assert run.seconds < 8
    assert "NCCL WARN socketProgress: Connection closed by remote peer" in run.out
    assert "Test NCCL failure common.cu:514 'remote process exited or there was a network error / " in run.out
    assert "Out of bounds" not in run.out
    assert [pid for host in hosts.names for pid in hosts.ranks(host)] == []


def test_a_stopped_rank_is_a_hang(hosts: Hosts) -> None:
    # Retries would be used up after half a second; a stopped peer's kernel still answers.
    run = interrupted(hosts, signal.SIGSTOP, 3, NCCL_IB_TIMEOUT="14")
    assert run.code == HUNG
    assert "failure" not in run.out
    assert "WARN" not in run.out


def test_timeout_option_ends_a_hang(hosts: Hosts) -> None:
    # Longer than a busy machine takes to get to the signal.
    run = interrupted(hosts, signal.SIGSTOP, 20, "-T", "4")
    assert run.code > 0
    assert re.search(r"h\d: Test timeout \(4s\) common.cu:523", run.out), run.out


def test_a_path_with_too_small_an_mtu_uses_up_the_retries(hosts: Hosts) -> None:
    for offload in ("tso", "gso"):  # else packets pass a port whatever its MTU (simulation.md 0b.7)
        subprocess.run(["ip", "netns", "exec", hosts.ns("h1"), "ethtool", "-K", "ens1np0", offload, "off"], check=True)
    ip("-n", hosts.fabric, "link", "set", "h2r1", "mtu", "1500")
    try:
        run = hosts.run(SHORT, NCCL_DEBUG="WARN", NCCL_IB_TIMEOUT="15")
    finally:
        ip("-n", hosts.fabric, "link", "set", "h2r1", "mtu", "4200")
    assert run.code == 3, run.out
    assert re.search(r"h1:\d+:\d+ \[1\] transport/net_ib/p2p.cc:550 NCCL WARN NET/IB: Got completion from peer "
                     r"10.99.0.2<\d+> with status=IBV_WC_RETRY_EXC_ERR\(12\) opcode=IBV_WC_SEND\(0\) vendor_err=129  "
                     r"localGid ::ffff:10.99.2.1 remoteGids::ffff:10.99.2.2 hca mlx5_1\n", run.out), run.out


def test_an_address_that_nobody_has(hosts: Hosts) -> None:
    ip("-n", hosts.fabric, "link", "set", "h2r1", "down")
    try:
        run = hosts.run(SHORT, NCCL_DEBUG="WARN", NCCL_IB_TIMEOUT="17")
    finally:
        ip("-n", hosts.fabric, "link", "set", "h2r1", "up")
    assert run.code == 3, run.out
    assert "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_1:1, " in run.out


@pytest.mark.parametrize(("env", "using", "netdevs"), [
    ({}, "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE ", ("ens0np0", "ens1np0")),
    ({"NCCL_IB_HCA": "mlx5"}, "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE ", ("ens0np0", "ens1np0")),
    ({"NCCL_IB_HCA": "=mlx5_1:1"}, "[0]mlx5_1:1/RoCE ", ("ens1np0",)),
    ({"NCCL_IB_HCA": "^=mlx5_0"}, "[0]mlx5_1:1/RoCE ", ("ens1np0",)),
])
def test_evidence_of_the_rails(hosts: Hosts, env: dict[str, str], using: str, netdevs: tuple[str, ...]) -> None:
    before = [hosts.sent("h1", rail) for rail in range(RAILS)]
    run = hosts.run(SHORT, ["h1", "h2"], NCCL_DEBUG="INFO", NCCL_IB_TC="106", **env)
    assert run.code == 0, run.out
    assert f"NCCL INFO NET/IB : Using {using}; OOB eth0:10.99.0.1<0>\n" in run.out
    assert "NCCL INFO NCCL_IB_TC set by environment to 106.\n" in run.out
    assert "NCCL INFO Using network IB\n" in run.out
    for channel, netdev in enumerate(netdevs):
        subnet = int(netdev[3]) + 1
        assert f"is TCP on netdev {netdev}, GID index 3 ::ffff:10.99.{subnet}.1\n" in run.out
        assert f"NCCL INFO Channel {channel:02}/0 : 1[1] -> 2[0] [send] via NET/IB/{channel}\n" in run.out
    assert "GDRDMA" not in run.out
    moved = {f"ens{rail}np0" for rail in range(RAILS) if hosts.sent("h1", rail) - before[rail] > 100_000}
    assert moved == set(netdevs)


@pytest.mark.parametrize("env", [{"NCCL_IB_DISABLE": "1"}, {"NCCL_IB_HCA": "=mlx5"}])
def test_without_a_usable_hca_it_falls_back_to_sockets(hosts: Hosts, env: dict[str, str]) -> None:
    run = hosts.run(SHORT, ["h1", "h2"], NCCL_DEBUG="INFO", NCCL_SOCKET_IFNAME="=ens1np0", **env)
    assert run.code == 0, run.out
    assert ("NET/IB : No device found." in run.out) == ("NCCL_IB_HCA" in env)
    assert "NCCL INFO NET/Socket : Using [0]ens1np0:10.99.2.1<0>\n" in run.out
    assert "NCCL INFO Using network Socket\n" in run.out
    assert "NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/0\n" in run.out
    assert "NET/IB/" not in run.out


def test_a_port_that_is_down_on_one_node_only(hosts: Hosts) -> None:
    state = hosts.work / "hosts/h2/infiniband/mlx5_1/ports/1/state"
    state.write_text("1: DOWN\n")
    try:
        run = hosts.run(SHORT, NCCL_DEBUG="WARN")
    finally:
        state.write_text("4: ACTIVE\n")
    assert run.code == 3, run.out
    assert "NCCL WARN Detected mixed local Net device counts across ranks (min 1, max 2). " in run.out


@pytest.mark.parametrize(("index", "code", "text"), [
    ("7", 3, "Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_0:1, "),
    ("2", 0, "GID index 2 ::ffff:10.99.1.1"),
])
def test_a_forced_gid_index(hosts: Hosts, index: str, code: int, text: str) -> None:
    run = hosts.run(SHORT, ["h1", "h2"], NCCL_DEBUG="INFO", NCCL_IB_GID_INDEX=index)
    assert run.code == code, run.out
    assert text in run.out


@pytest.mark.parametrize("program", build.PROGRAMS)
@pytest.mark.parametrize("names", [["h1"], ["h1", "h2", "h3"]])
def test_every_program_is_right_for_odd_sizes(hosts: Hosts, program: str, names: list[str]) -> None:
    run = hosts.run(["-b", "0", "-e", "1000", "-i", "36", "-g", "3", "-n", "1"], names, program)
    assert run.code == 0, run.out
    assert len(run.rows()) == 28
    assert "# Out of bounds values : 0 OK\n" in run.out
    assert "SIMULATED" in run.out


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (["-q"], 0, "USAGE: all_reduce_perf \n\t[-t,--nthreads <num threads>] \n"),
    (["-b", "3x"], 255, "invalid size specified for 'minbytes'\n"),
    (["-d", "half"], 6, "the stand-in does not simulate this\n"),
    (["-g", "17"], 5, "Invalid number of GPUs: 17 requested but only 16 were found.\n"),
])
def test_refusals(hosts: Hosts, arguments: list[str], code: int, text: str) -> None:
    run = hosts.run(arguments, ["h1"])
    assert run.code == code, run.out
    assert text in run.out
    assert run.rows() == []
