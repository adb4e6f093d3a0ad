# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/discover.yml gives the lab's inventory back; preflight lets the lab pass and says what is wrong."""
from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab_plugin import BIN, ROOT, Lab, Labs, Play, run_lab
from tests.snapshot import difference

# Above a minute: `make full` runs these.
pytestmark = pytest.mark.slow

FLEET = Path(__file__).parent / "fleets" / "discover.yml"
GROUPS = {"gb200": ["gb1"], "l40s": ["l40s1"], "epyc9754": ["epyc1"]}
HOSTS = ["gb1", "l40s1", "epyc1"]
CLASSES = ROOT / "inventories" / "classes"
FIXTURES = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_discover" / "classes"
ACTION = "aidc.gpu_cluster.discover"
TRAY = ["0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0"]


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Iterator[Lab]:
    with labs.during("disc", FLEET) as made:
        yield made


def ask(lab: Lab, folder: Path, *more: str, hosts: str = "gb1,l40s1,epyc1,") -> Play:
    """As a stranger does: host names and a way to log in, nothing else. A name is all that the hosts are called by."""
    config = lab.instance.dir / "ssh_config"
    way = {"ansible_ssh_common_args": f"-F {config}", "ansible_control_path_dir": str(lab.instance.dir / "cp"),
           "ansible_user": "ops"}
    done = Lab(lab.instance, Path(hosts)).play(
        "playbooks/discover.yml", "-e", f"aidc_discover_dir={folder}",
        "-e", f"aidc_discover_classes_dir={CLASSES if CLASSES.is_dir() else FIXTURES}",
        "-e", json.dumps(way), *more)
    assert done.code == 0, done.text[-4000:]
    return done


def result(play: Play) -> dict[str, Any]:
    found = play.results(ACTION)
    assert len(found) == 1
    return next(iter(found.values()))


def inventory(path: Path) -> dict[str, Any]:
    """Groups and variables of an inventory as ansible-inventory has them."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([str(BIN / "ansible-inventory"), "-i", str(path), "--list"], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=True, timeout=60)
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def variables(data: dict[str, Any], host: str) -> dict[str, Any]:
    found: dict[str, Any] = data["_meta"]["hostvars"][host]
    return found


def odd(play: Play, host: str) -> dict[str, tuple[str, str]]:
    return {item["object"]: (item["got"], item["wanted"]) for item in result(play)["differences"]
            if item["host"] == host}


def test_bare_hosts_without_root(lab: Lab, tmp_path: Path) -> None:
    """Classes and rails come from the bus; addresses there are none yet. Nothing is touched."""
    before = {host: lab.snapshot(host) for host in HOSTS}
    play = ask(lab, tmp_path / "out")
    for host in HOSTS:
        # A first login makes /home/ops, whatever it does.
        assert [line for line in difference(before[host], lab.snapshot(host)) if not line.startswith("/home:")] == []
    found, there = inventory(tmp_path / "out"), inventory(lab.inventory)
    for group, hosts in GROUPS.items():
        assert found[group]["hosts"] == there[group]["hosts"] == hosts
    for host in HOSTS:
        mine, lab_has = variables(found, host), variables(there, host)
        assert mine["mlx5_port_rails"] == lab_has["mlx5_port_rails"]
        assert (mine["rail_network_node_index"], mine["rail_network_subnets"]) == ("CHANGEME", "CHANGEME")
    # No driver tells the domain in the lab.
    assert variables(found, "gb1")["nvlink_domain"] == "CHANGEME"
    assert "nvlink_domain" not in variables(found, "l40s1")
    assert odd(play, "gb1")["architecture"] == ("x86_64", "aarch64")
    assert not any(name.startswith(("rails", "speed", "link", "PCIe", "GPU", "NIC")) for host in HOSTS
                   for name in odd(play, host)), result(play)["differences"]
    lines = result(play)["table"]
    assert "4 x GB200 (10de:2941)" in lines[1] and "4 x L40S (10de:26b9)" in lines[2]
    assert "/sys/class/dmi/id/product_serial" in play.text or not Path("/sys/class/dmi/id/product_serial").exists()


def test_after_the_rails_have_addresses_the_lab_inventory_comes_back(lab: Lab, tmp_path: Path) -> None:
    book = tmp_path / "rails.yml"
    book.write_text("- hosts: all\n  gather_facts: false\n  roles: [aidc.gpu_cluster.rail_network]\n", encoding="utf-8")
    assert lab.play(str(book)).code == 0
    out = tmp_path / "out"
    play = ask(lab, out, "--become")
    found, there = inventory(out), inventory(lab.inventory)
    for host in HOSTS:
        mine, lab_has = variables(found, host), variables(there, host)
        rails = len(lab_has["mlx5_port_rails"])
        assert mine["mlx5_port_rails"] == lab_has["mlx5_port_rails"]
        assert mine["rail_network_node_index"] == lab_has["rail_network_node_index"]
        assert mine["rail_network_subnets"][:rails] == lab_has["rail_network_subnets"]
    assert (found["leaf1"]["hosts"], sorted(found["leaf2"]["hosts"])) == (["gb1"], ["epyc1", "l40s1"])
    assert all(one["needs_root"] == [] for one in result(play)["hosts"])
    assert {line.split()[-1] for line in result(play)["rails_table"][1:]} == {"networkd"}
    # What was written is an inventory: it is sound, it reaches the hosts, and the plan of the rails is the lab's.
    written = Lab(lab.instance, out)
    # What nobody can see from outside is left to fill in, and named; that done, it is sound.
    marked = written.play("playbooks/validate.yml")
    assert marked.code != 0 and "gb1.nvlink_domain: still marked CHANGEME" in marked.text
    hosts = out / "hosts.yml"
    hosts.write_text(hosts.read_text(encoding="utf-8").replace("CHANGEME", "nvl1"), encoding="utf-8")
    validated = written.play("playbooks/validate.yml")
    assert validated.code == 0, validated.text[-3000:]
    again = written.play(str(book), "-e", "rail_network_mode=verify")
    assert again.code == 0 and again.hosts() == sorted(HOSTS), again.text[-3000:]


def test_a_lost_card_is_named(lab: Lab, tmp_path: Path) -> None:
    run_lab("fault", "set", "lost-nic", "gb1", "rail=2", name=lab.instance.name)
    try:
        play = ask(lab, tmp_path / "out", hosts="gb1,")
    finally:
        run_lab("fault", "clear", name=lab.instance.name)
        run_lab("driver-reload", "gb1", name=lab.instance.name)
    left = [pci for pci in TRAY if pci != TRAY[2]]
    assert odd(play, "gb1")["rails"] == (f"3 ({', '.join(left)})", "4")
    assert [one["group"] for one in result(play)["hosts"]] == ["gb200"]


def test_preflight(lab: Lab, tmp_path: Path) -> None:
    """It passes on the lab with one question a host; twins, a full disk and a host that is down are in one message."""
    book = tmp_path / "preflight.yml"
    book.write_text("- hosts: all\n  gather_facts: false\n  roles: [aidc.gpu_cluster.preflight]\n", encoding="utf-8")
    good = lab.play(str(book))
    assert good.code == 0 and good.hosts() == sorted(HOSTS), good.text[-3000:]
    local = {f"ansible.builtin.{name}" for name in ("set_fact", "assert", "debug", "validate_argument_spec")}
    remote = [task["task"]["name"] for task in good.tasks
              if any(item.get("action") not in local for item in task["hosts"].values())]
    assert len(remote) == 1, remote
    more = tmp_path / "more.yml"
    more.write_text(yaml.safe_dump({"all": {"hosts": {"down": {"ansible_host": "10.77.0.99"}}}}), encoding="utf-8")
    own = lab.inside("gb1", "cat", "/etc/machine-id").stdout.strip()
    other = lab.inside("l40s1", "cat", "/etc/machine-id").stdout.strip()
    lab.inside("l40s1", "sh", "-c", f"echo {own} > /etc/machine-id")
    try:
        bad = lab.play(str(book), "-i", str(more), "-e", "ansible_ssh_retries=0", "-e",
                       json.dumps({"preflight_disks": [{"path": "/var", "free_gib": 10**6}]}))
    finally:
        lab.inside("l40s1", "sh", "-c", f"echo {other} > /etc/machine-id")
    assert bad.code == 2
    lines, = [item["msg"] for task in bad.tasks for item in task["hosts"].values()
              if isinstance(item.get("msg"), list) and item["msg"][0].startswith("preflight: ")]
    assert lines[0] == f"preflight: {len(lines) - 1} errors on 4 hosts"
    for start in ("down: host: got unreachable", "gb1: free space of /var: got ", "epyc1: free space of /var: got ",
                  f"gb1: machine-id: got {own}, that of l40s1 too", f"l40s1: machine-id: got {own}, that of gb1 too"):
        assert [line for line in lines if line.startswith(start)], (start, lines)
