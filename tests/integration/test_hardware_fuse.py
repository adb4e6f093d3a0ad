# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated hardware over a real FUSE mount, against real netdevs. Needs root, FUSE and network namespaces."""
from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.hardware import mount
from tests.integration.hardware_host import ENVIRONMENT, ROOT, Host, until

ZERO = ":".join(["0000"] * 8)
NET = "sys/class/net/enp3s0f0np0"
RDMA = "sys/class/infiniband/mlx5_0"


@pytest.fixture(name="host", scope="module")
def fixture_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("hwtest-"))
    yield host
    host.close()
    assert host.daemon.returncode == 0


def code(call: Callable[[], object]) -> str:
    """Name of the errno a call fails with, empty when it does not."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def test_netdev_leads_to_pci_and_rdma(host: Host) -> None:
    for rail in host.spec.rails:
        net = host.path(f"sys/class/net/{rail.netdev}")
        assert os.readlink(net) == f"../../{rail.pci_dir}/net/{rail.netdev}"
        assert os.path.basename(os.readlink(net / "device")) == rail.pci
        assert (net / "device/infiniband").is_dir()
        assert os.listdir(net / "device/infiniband") == [rail.rdma]
        assert os.listdir(host.path(f"sys/class/infiniband/{rail.rdma}/device/net")) == [rail.netdev]
        assert host.read(f"sys/class/net/{rail.netdev}/address") == rail.mac
        assert host.read(f"sys/bus/pci/devices/{rail.pci}/numa_node") == str(rail.numa_node)
        for link in ("bus/pci/drivers/mlx5_core", "bus/pci/devices"):
            assert os.path.samefile(host.path(f"sys/{link}/{rail.pci}"), host.path(f"sys/{rail.pci_dir}"))
        assert os.path.samefile(net / "subsystem", host.path("sys/class/net"))
    assert os.readlink(host.path("sys/class/net/lo")) == "../../devices/virtual/net/lo"
    assert set(os.listdir(host.path("sys/class/net"))) == {
        "lo", *(rail.netdev for rail in host.spec.rails), *(f"peer{rail.rail}" for rail in host.spec.rails)}
    assert host.read("sys/class/infiniband_verbs/uverbs1/ibdev") == "mlx5_1"


def test_pci_configuration_space(host: Host) -> None:
    config = host.path("sys/bus/pci/devices/0002:03:00.0/config")
    data = config.read_bytes()
    assert data[:4] == bytes.fromhex("b3152110")
    assert data[9:12] == bytes.fromhex("000002")
    assert stat.S_IMODE(config.stat().st_mode) == 0o644
    with config.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"\x30\x58", 0x68)
        os.pwrite(file.fileno(), b"\xff", 0)
        assert os.pread(file.fileno(), 2, 0x68) == b"\x30\x58"
    assert config.read_bytes()[:2] == data[:2]


def test_mtu_is_one_state_behind_all_doors(host: Host) -> None:
    for netdev_mtu, rdma_mtu in ((4200, 5), (1500, 3), (300, 0), (9000, 5), (4191, 4)):
        host.ip(f"link set enp3s0f0np0 mtu {netdev_mtu}")
        assert host.read(f"{NET}/mtu") == str(netdev_mtu)
        assert f'"active_mtu": {rdma_mtu}' in host.read("dev/infiniband/uverbs0")
    host.path(f"{NET}/mtu").write_text("4200\n")
    shown = subprocess.run(host.enter_net(["ip", "-o", "link", "show", "enp3s0f0np0"]), capture_output=True, text=True,
                           check=True)
    assert " mtu 4200 " in shown.stdout


def test_writes_fail_as_in_sysfs(host: Host) -> None:
    mtu = host.path(f"{NET}/mtu")
    assert code(lambda: mtu.write_text("999999")) == "EINVAL"
    assert code(lambda: mtu.write_text("x")) == "EINVAL"
    assert host.read(f"{NET}/mtu") == "4200"
    assert code(lambda: host.path(f"{NET}/address").write_text("x")) == "EACCES"
    assert code(lambda: host.path(f"{RDMA}/fw_ver").write_text("x")) == "EACCES"
    assert code(lambda: host.path(f"{RDMA}/new").write_text("x")) == "EACCES"
    assert code(lambda: host.path(f"{NET}/new").write_text("x")) == "EACCES"
    for call in (lambda: host.path(f"{NET}/new").mkdir(), mtu.unlink, host.path(f"{NET}/statistics").rmdir,
                 lambda: mtu.rename(host.path(f"{NET}/new")), lambda: host.path(f"{NET}/new").symlink_to("mtu")):
        assert code(call) == "EPERM"
    # The same of this machine's own sysfs.
    assert code(lambda: Path("/sys/class/net/lo/new").mkdir()) == "EPERM"
    assert code(lambda: Path("/sys/class/net/lo/new").write_text("x")) == "EACCES"
    lifespan = host.path(f"{RDMA}/ports/1/hw_counters/lifespan")
    lifespan.write_text("20\n")
    assert code(lambda: lifespan.write_text("10001")) == "EINVAL"
    assert lifespan.read_text() == "20\n"


def test_others_than_root_may_only_read(host: Host) -> None:
    script = "import os; os.setuid(65534); print(len(open('/sys/bus/pci/devices/0000:03:00.0/config','rb').read()), " \
             "open('/sys/class/net/enp3s0f0np0/mtu').read()); open('/sys/class/net/enp3s0f0np0/mtu','w')"
    result = host.run("/usr/bin/python3", "-c", script)
    assert result.stdout == "64 4200\n\n"
    assert "PermissionError: [Errno 13]" in result.stderr


def test_pass_through_shows_what_the_kernel_has(host: Host) -> None:
    net = host.path(NET)
    statistics = os.listdir(net / "statistics")
    assert "rx_bytes" in statistics and int((net / "statistics/rx_bytes").read_text()) >= 0
    assert (net / "queues/rx-0/rps_cpus").is_file()
    assert (net / "mtu").stat().st_size == 4096
    assert "INTERFACE=enp3s0f0np0" in (net / "uevent").read_text()
    host.ip("link set enp3s0f0np0 down")
    assert code((net / "carrier").read_text) == "EINVAL"
    host.ip("link set enp3s0f0np0 up")


def test_port_without_carrier(host: Host) -> None:
    port = f"{RDMA}/ports/1"
    assert [host.read(f"{port}/{name}") for name in ("state", "phys_state", "rate")] == [
        "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)"]
    host.ip("link set peer0 down")
    assert [host.read(f"{port}/{name}") for name in ("state", "phys_state", "rate")] == [
        "1: DOWN", "3: Disabled", "40 Gb/sec (4X QDR)"]
    host.ip("link set peer0 up")
    assert host.read(f"{port}/state") == "4: ACTIVE"


def test_gids_follow_address_events(host: Host) -> None:
    own = "fe80:0000:0000:0000:ba3f:d2ff:fe00:0031"
    two, three = "0000:0000:0000:0000:0000:ffff:c000:0202", "0000:0000:0000:0000:0000:ffff:c000:0203"
    six = "fd00:0000:0000:0000:0000:0000:0000:0009"
    netdev = host.spec.rails[1].netdev
    assert [slot[:3] for slot in host.gids(1)] == [(0, own, "IB/RoCE v1"), (1, own, "RoCE v2")]
    for address in ("192.0.2.2/24", "fd00::9/64", "192.0.2.3/24"):
        host.ip(f"addr add {address} dev {netdev}{' nodad' if ':' in address else ''}")
    assert host.gids(1)[2:] == [
        (2, two, "IB/RoCE v1", netdev), (3, two, "RoCE v2", netdev), (4, six, "IB/RoCE v1", netdev),
        (5, six, "RoCE v2", netdev), (6, three, "IB/RoCE v1", netdev), (7, three, "RoCE v2", netdev)]
    host.ip(f"addr del fd00::9/64 dev {netdev}")
    host.ip(f"addr add 192.0.2.4/24 dev {netdev}")
    assert [slot[0] for slot in host.gids(1)] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert host.gids(1)[4][1].endswith("c000:0204")
    host.ip(f"link set {netdev} down")
    assert len(host.gids(1)) == 8
    host.ip(f"link set {netdev} up")


def test_empty_slot(host: Host) -> None:
    port = f"{RDMA}/ports/1"
    assert len(os.listdir(host.path(f"{port}/gids"))) == 255
    assert host.read(f"{port}/gids/254") == ZERO
    for name in ("types", "ndevs"):
        assert code(lambda name=name: host.read(f"{port}/gid_attrs/{name}/254")) == "EINVAL"  # type: ignore[misc]
        assert code(lambda name=name: host.read(f"{port}/gid_attrs/{name}/255")) == "ENOENT"  # type: ignore[misc]


def test_macvlan_takes_slots_of_its_port(host: Host) -> None:
    netdev = host.spec.rails[2].netdev
    host.ip(f"link add link {netdev} name mv0 type macvlan")
    host.ip("addr add 198.51.100.7/24 dev mv0")
    assert [(slot[0], slot[3]) for slot in host.gids(2)][2:4] == [(2, "mv0"), (3, "mv0")]
    lower = host.path(f"sys/class/net/{netdev}/upper_mv0")
    assert os.readlink(lower) == "../../../../../virtual/net/mv0"
    host.ip("link del mv0")
    assert [slot[0] for slot in host.gids(2)] == [0, 1]


def test_link_made_anew_and_renamed(host: Host) -> None:
    rail = host.spec.rails[3]
    host.ip(f"addr add 203.0.113.3/24 dev {rail.netdev}")
    assert len(host.gids(3)) == 4
    host.ip(f"link del {rail.netdev}")
    assert host.gids(3) == []
    assert os.listdir(host.path(f"sys/bus/pci/devices/{rail.pci}/net")) == []
    assert host.read(f"sys/class/infiniband/{rail.rdma}/ports/1/state") == "1: DOWN"
    host.make_link(3)
    assert [slot[3] for slot in host.gids(3)] == [rail.netdev, rail.netdev]
    host.ip(f"link set {rail.netdev} name rail3")
    assert os.readlink(host.path("sys/class/net/rail3")).endswith(f"{rail.pci}/net/rail3")
    assert [slot[3] for slot in host.gids(3)] == ["rail3", "rail3"]
    host.ip(f"link set rail3 name {rail.netdev}")


def test_ibv_devinfo_layout(host: Host) -> None:
    host.ip("link set enp3s0f0np0 mtu 1500")
    result = host.ibv_devinfo("-d", "mlx5_0")
    # Lines of samples/ibv_devinfo-1, tabs included.
    assert result.stdout == (
        "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.1002\n"
        "\tnode_guid:\t\t\tb83f:d203:0000:0030\n\tsys_image_guid:\t\t\tb83f:d203:0000:0030\n"
        "\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4129\n\thw_ver:\t\t\t\t0x0\n"
        "\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n"
        "\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tEthernet\n\n")
    assert (result.returncode, result.stderr) == (0, "")
    assert host.ibv_devinfo().stdout.count("hca_id:") == 4
    host.ip("link set enp3s0f0np0 mtu 300")
    assert "\t\t\tactive_mtu:\t\tinvalid MTU (0)\n" in host.ibv_devinfo("-d", "mlx5_0", "-i", "1").stdout
    host.ip("link set enp3s0f0np0 mtu 4200")


def test_ibv_devinfo_options(host: Host) -> None:
    verbose = host.ibv_devinfo("-v", "-d", "mlx5_1").stdout
    assert "\t\t\tgid_tbl_len:\t\t255\n" in verbose
    assert "\t\t\tGID[  2]:\t\t0000:0000:0000:0000:0000:ffff:c000:0202, RoCE v1\n" in verbose
    assert "\t\t\tGID[  3]:\t\t::ffff:192.0.2.2, RoCE v2\n" in verbose
    assert host.ibv_devinfo("-l").stdout == "4 HCAs found:\n\tmlx5_0\n\tmlx5_1\n\tmlx5_2\n\tmlx5_3\n\n"
    missing = host.ibv_devinfo("-d", "mlx5_9")
    assert (missing.returncode, missing.stderr) == (255, "IB device 'mlx5_9' wasn't found\n")
    assert host.ibv_devinfo("-i", "2").returncode == 4
    assert host.ibv_devinfo("-i", "0").returncode == 1
    assert host.ibv_devinfo("--nonsense").returncode == 255


def test_cost(host: Host) -> None:
    paths = [host.path(f"{RDMA}/ports/1/gids/{index}") for index in range(64)]
    begin = time.monotonic()
    for path in paths:
        path.read_bytes()
    seconds = time.monotonic() - begin
    status = Path(f"/proc/{host.daemon.pid}/status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    print(f"64 GIDs in {seconds * 1000:.0f} ms, daemon {resident:.1f} MiB")
    assert seconds < 0.5
    assert resident < 24


def test_a_killed_daemon_is_an_error_at_once(tmp_path: Path) -> None:
    host = Host(tmp_path, "epyc9754")
    try:
        assert host.read("sys/class/infiniband/mlx5_0/ports/1/rate") == "100 Gb/sec (4X EDR)"
        with host.path("sys/class/infiniband/mlx5_0/fw_ver").open("rb", buffering=0) as file:
            host.daemon.kill()
            host.daemon.wait()
            begin = time.monotonic()
            assert code(lambda: file.read()) == "ENOTCONN"
            assert code(lambda: host.read("sys/class/infiniband/mlx5_0/ports/1/state")) == "ENOTCONN"
            assert code(lambda: host.path("sys/class/net").iterdir().__next__()) == "ENOTCONN"
        result = host.ibv_devinfo()
        assert result.returncode != 0 and result.stdout == "" and result.stderr.startswith("Failed to ")
        assert time.monotonic() - begin < 1
        # The netdev itself lives on: only its picture is gone.
        host.ip("link set enp129s0f0np0 mtu 2000")
    finally:
        host.close()


def test_daemon_that_cannot_start_is_reported(tmp_path: Path) -> None:
    launcher_end, daemon_end = socket.socketpair()
    argv = mount.daemon_argv(str(tmp_path / "missing.json"), daemon_end.fileno(), str(tmp_path), sys.executable)
    with daemon_end:
        process = subprocess.Popen(argv, env=ENVIRONMENT, cwd=ROOT, pass_fds=[daemon_end.fileno()],
                                   stderr=subprocess.DEVNULL)
    with pytest.raises(mount.HandOverError, match="ended before it was ready"):
        mount.hand_over(str(tmp_path), launcher_end)
    assert process.wait(timeout=10) != 0
    assert until(lambda: not os.path.ismount(tmp_path))
