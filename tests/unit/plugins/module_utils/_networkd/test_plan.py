# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import (
    HEADER,
    ConfigFile,
    Link,
    Networkd,
    Saved,
)

MAIN = "/etc/systemd/network/20-rail0.network"
OURS = f"{MAIN}.d/50-aidc-mtu.conf"


def mtu(path: str, value: int | str) -> ConfigFile:
    return ConfigFile(path, f"[Link]\nMTUBytes={value}\n")


@pytest.mark.parametrize(("files", "value", "decider"), [
    ((), None, None),
    ((ConfigFile(MAIN, "[Match]\nName=rail0\n"),), None, None),
    ((mtu(MAIN, 1500),), 1500, MAIN),
    ((mtu(MAIN, 1500), mtu(OURS, 4200)), 4200, OURS),
    ((mtu(MAIN, 1500), mtu(OURS, 4200), ConfigFile("/z.conf", "[Network]\n")), 4200, OURS),
    ((mtu(MAIN, 1500), mtu("/z.conf", "")), None, "/z.conf"),
])
def test_effective(files: tuple[ConfigFile, ...], value: int | None, decider: str | None) -> None:
    assert plan.effective_mtu(Saved(MAIN, files)) == (value, decider)


def test_effective_without_a_file() -> None:
    assert plan.effective_mtu(None) == (None, None)


def test_dropin() -> None:
    assert plan.dropin_path("/usr/lib/systemd/network/20-rail0.network") == OURS
    assert plan.dropin_text(4200) == f"{HEADER}\n[Link]\nMTUBytes=4200\n"


def test_with_dropin_takes_its_place_by_name_and_hides_the_same_name_elsewhere() -> None:
    saved = Saved(MAIN, (mtu(MAIN, 1), mtu("/run/x/10-a.conf", 2), mtu("/run/x/50-aidc-mtu.conf", 3),
                         mtu("/etc/90.conf", 4)))
    after = plan.with_dropin(saved, 4200)
    assert [file.path for file in after.files] == [MAIN, "/run/x/10-a.conf", OURS, "/etc/90.conf"]


def test_check_dropin() -> None:
    def check(*files: ConfigFile, main: str = MAIN) -> str:
        problem = plan.check_dropin(Saved(main, (ConfigFile(main, ""), *files)), 4200, "rail0")
        return problem.text() if problem else ""

    assert check() == ""
    assert check(ConfigFile(OURS, plan.dropin_text(9000))) == ""
    assert check(mtu(f"{MAIN}.d/90-z.conf", 4200)) == ""
    assert "not ours" in check(mtu(OURS, 9000))
    assert f"MTUBytes=9000 in {MAIN}.d/90-z.conf, which is read after 50-aidc-mtu.conf" in check(
        mtu(f"{MAIN}.d/90-z.conf", 9000))
    assert f"MTUBytes= in {MAIN}.d/90-z.conf" in check(mtu(f"{MAIN}.d/90-z.conf", ""))
    assert "netplan as the owner" in check(main="/run/systemd/network/10-netplan-rail0.network")


def test_check_owner() -> None:
    links = {"rail0": Link("rail0", "configured", "routable", MAIN), "rail1": Link("rail1", "unmanaged")}
    networkd = Networkd("active", links, {MAIN: Saved(MAIN)})
    assert plan.check_owner(networkd, "rail0") is None
    for name, state in (("rail1", "unmanaged"), ("rail2", "not known to networkd")):
        problem = plan.check_owner(networkd, name)
        assert problem is not None
        assert f"no .network file (networkd: {state})" in problem.text()
    problem = plan.check_owner(Networkd("inactive"), "rail0")
    assert problem is not None
    assert "let rail_network save it, which knows other managers" in problem.text()
    assert plan.check_owner(Networkd("active", problem=Problem("a", "b", "c")), "rail0") == Problem("a", "b", "c")
