# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""inventories/prod as a stranger gets it: it parses, validate says what is left, render writes all. No host is met."""
from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PROD = ROOT / "inventories" / "prod"
GOLDEN = Path(__file__).with_name("golden")
BIN = Path(sys.executable).parent
PASSWORD = "example-vault-password"
HOSTS = {"gb200": 36, "l40s": 16, "epyc9754": 32}
# One host of each class, and all pools.
SAMPLES = ("hosts/gb1-01", "hosts/l40s-01", "hosts/epyc-01", "pools")


def run(program: str, *arguments: str, inventory: Path = PROD, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(cwd / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                   "LC_ALL": "C.UTF-8"}
    return subprocess.run([str(BIN / program), "-i", str(inventory), *arguments], cwd=cwd, env=environment,
                          capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)


def playbook(*arguments: str, inventory: Path = PROD, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run("ansible-playbook", *arguments, inventory=inventory, cwd=cwd)


def processor_seconds() -> float:
    """Of programs that were run and have ended; the time by the clock says more about the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """As a user copies it: the links stay links beside what they point to."""
    for name in ("classes", "common", "prod"):
        shutil.copytree(ROOT / "inventories" / name, tmp_path / name, symlinks=True,
                        ignore=shutil.ignore_patterns(".rendered", ".state"))
    return tmp_path / "prod"


@pytest.fixture
def small(copy: Path) -> Path:
    """The first two hosts of each leaf."""
    data = yaml.safe_load((copy / "hosts.yml").read_text(encoding="utf-8"))
    for group in data["all"]["children"].values():
        if "hosts" in group:
            group["hosts"] = dict(list(group["hosts"].items())[:2])
    (copy / "hosts.yml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return copy


def fill_in(inventory: Path) -> None:
    """Every value that must be changed is changed, and every mark removed."""
    for path in inventory.parent.rglob("*.yml"):
        if not path.is_symlink():
            text = path.read_text(encoding="utf-8")
            text = text.replace("nccl_gate_min_busbw_gbps: CHANGEME", "nccl_gate_min_busbw_gbps: 20")
            text = text.replace("key: CHANGEME", "key: A KEY").replace("CHANGEME", "looked at")
            path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("arguments", [["--syntax-check"], ["--list-tasks"], ["--list-tags"]])
def test_site_from_a_clean_clone(arguments: list[str], tmp_path: Path) -> None:
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_symlink() or (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name, follow_symlinks=False)
    done = playbook("site.yml", *arguments, inventory=tmp_path / "inventories" / "prod", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    assert "site.yml" in done.stdout
    if arguments == ["--list-tags"]:
        assert "mlx5_port_configure" in done.stdout and "nccl_gate_report" in done.stdout


def test_the_site_that_it_says_it_is() -> None:
    done = run("ansible-inventory", "--list")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    values = data["_meta"]["hostvars"]
    domains = [values[host]["nvlink_domain"] for leaf in data["gb200"]["children"] for host in data[leaf]["hosts"]]
    assert sorted((name, domains.count(name)) for name in set(domains)) == [("nvl1", 18), ("nvl2", 18)]
    counts = {name: sum(len(data[leaf]["hosts"]) for leaf in data[name]["children"]) for name in HOSTS}
    assert counts == HOSTS
    assert {values[host]["node_class_name"] for host in values if "node_class_name" in values[host]} == set(HOSTS)
    assert set(data["slurm_compute"]["children"]) == set(HOSTS)


def test_validate_names_every_mark_at_once() -> None:
    marks = [f"{path.relative_to(PROD)}:{number}:" for path in sorted(PROD.rglob("*.yml"))
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if "CHANGEME" in line]
    assert len(marks) > 20
    start = processor_seconds()
    done = playbook("playbooks/validate.yml")
    seconds = processor_seconds() - start
    assert done.returncode == 2
    out = words(done.stdout)
    assert [mark for mark in marks if f"{PROD}/{mark}" not in out] == []
    for key in ("group_vars/l40s/10-site.yml:12: nccl_gate_min_busbw_gbps", "aidc_sources.apt.repositories[0].key",
                "leaf_nvl1.yml:3: rail_network_subnets", "00-common.yml:7: roce_qos_dscp", "hosts.yml:4: all"):
        assert f"{key}: still marked CHANGEME" in out, key
    assert seconds < 10, f"{seconds:.1f} s"


def test_validate_passes_when_all_is_filled_in(copy: Path) -> None:
    fill_in(copy)
    done = playbook("playbooks/validate.yml", inventory=copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deviations from the class" not in done.stdout, "the examples are those of the classes"


def test_a_deviation_is_shown_and_is_no_error(copy: Path) -> None:
    fill_in(copy)
    (copy / "host_vars").mkdir()
    (copy / "host_vars/gb1-03.yml").write_text("---\nmlx5_port_global_pause: unmanaged\n", encoding="utf-8")
    done = playbook("playbooks/validate.yml", inventory=copy)
    assert done.returncode == 0, done.stdout
    assert "deviations from the class" in done.stdout
    assert 'gb200: mlx5_port_global_pause: class "disabled", here "unmanaged": gb1-03' in words(done.stdout)


BAD = {
    "an address twice": ("hosts.yml", "gb1-02: {rail_network_node_index: 1}", "gb1-02: {rail_network_node_index: 0}",
                         "rail plan: address 198.51.100.1: got rail 0 of gb1-01 and rail 0 of gb1-02, wanted one port"),
    "subnets that overlap": ("group_vars/leaf_nvl2.yml", "203.0.113.0/26", "198.51.100.0/25",
                             "rail plan: rail 0 of gb2-01 and rail 0 of gb1-01: got 198.51.100.0/25 and 198.51.100.0"),
    "two MTUs": ("group_vars/l40s/10-site.yml", "nccl_gate_min_busbw_gbps: 20", "rail_network_mtu_bytes: 9000",
                 "l40s-01, l40s-02 ... l40s-16 (16 hosts): variables: rail_network_mtu_bytes: got 9000, wanted 4200"),
    "a type": ("group_vars/epyc9754/10-site.yml", "mlx5_port_rails:", "nccl_gate_iterations: many\nmlx5_port_rails:",
               "nccl_gate_iterations"),
    "a choice": ("group_vars/all/10-site.yml", "ansible_user: ops", "roce_qos_trust: dscpp",
                 "value of roce_qos_trust must be one of"),
    "a class": ("group_vars/l40s/10-site.yml", "mlx5_port_rails:", "node_class_rail_count: 3\nmlx5_port_rails:",
                "node_class_rail_count: got 3, wanted 2, as mlx5_port_rails has"),
    "a domain": ("hosts.yml", "nvlink_domain: nvl2", "nvlink_domain: nvl1", "nvlink_domain nvl1: got 36 hosts"),
}


@pytest.mark.parametrize("what", BAD)
def test_an_unsound_inventory_is_refused(copy: Path, what: str) -> None:
    fill_in(copy)
    name, good, bad, text = BAD[what]
    content = (copy / name).read_text(encoding="utf-8")
    assert good in content
    (copy / name).write_text(content.replace(good, bad), encoding="utf-8")
    done = playbook("playbooks/validate.yml", inventory=copy)
    assert done.returncode == 2
    assert text in words(done.stdout)


def test_the_example_secret_needs_its_password_only_when_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    ask = ("localhost", "-m", "ansible.builtin.debug", "-a", "var=vault_become_password")
    assert "not-a-password" not in (closed := run("ansible", *ask)).stdout and "no-password" not in closed.stdout
    assert "this-is-no-password" in run("ansible", *ask, "--vault-password-file", str(file)).stdout
    assert PASSWORD in (PROD / "README.md").read_text(encoding="utf-8")


# -- render ---------------------------------------------------------------------------------------------


def render(folder: Path, *arguments: str, inventory: Path = PROD) -> subprocess.CompletedProcess[str]:
    return playbook("playbooks/render.yml", "-e", f"aidc_render_dir={folder}", *arguments, inventory=inventory)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("rendered") / "out"
    start = processor_seconds()
    done = render(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, processor_seconds() - start


def texts(folder: Path, names: tuple[str, ...] = ("",)) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8")
            for name in names for path in sorted((folder / name).rglob("*")) if path.is_file()}


def test_every_artefact_of_a_host_of_each_class(rendered: tuple[Path, float]) -> None:
    """After a wanted change: render, and copy the folders of SAMPLES and manifest.sha256 into golden/."""
    folder, _seconds = rendered
    assert texts(folder, SAMPLES) == texts(GOLDEN, SAMPLES)


def test_the_manifest_has_all_files_of_all_hosts(rendered: tuple[Path, float]) -> None:
    folder, seconds = rendered
    files = {name: text for name, text in texts(folder).items() if name != ".lock"}
    manifest = files.pop("manifest.sha256")
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    assert manifest == "".join(f"{found}  {name}\n" for name, found in sorted(sums.items()))
    assert manifest == (GOLDEN / "manifest.sha256").read_text(encoding="utf-8")
    assert len({name.split("/")[1] for name in files if name.startswith("hosts/")}) == sum(HOSTS.values())
    assert seconds < 30, f"{seconds:.1f} s"


def test_the_addresses_are_those_of_the_plan(rendered: tuple[Path, float]) -> None:
    """Told by the settings and by the network manager's file, and counted over the fleet."""
    folder, _seconds = rendered
    found = []
    for path in sorted((folder / "hosts").iterdir()):
        for rail in yaml.safe_load((path / "settings.yml").read_text(encoding="utf-8"))["rail_network"]["rails"]:
            file = path / f"files/etc/systemd/network/05-aidc-rail{rail['rail']}.network"
            assert f"Address={rail['address']}\n" in file.read_text(encoding="utf-8")
            found.append(rail["address"])
    assert len(found) == len(set(found)) == 36 * 4 + 16 * 2 + 32


def test_a_second_render_changes_nothing_and_a_host_less_is_removed(small: Path) -> None:
    folder = small / ".rendered"  # the default
    assert "changed=1" in playbook("playbooks/render.yml", inventory=small).stdout
    before = texts(folder)
    assert "changed=0" in render(folder, inventory=small).stdout
    text = (small / "hosts.yml").read_text(encoding="utf-8")
    assert "epyc-02:" in text
    text = text.replace("        epyc-02:\n          rail_network_node_index: 2\n", "")
    (small / "hosts.yml").write_text(text, encoding="utf-8")
    assert "changed=1" in render(folder, "--check", inventory=small).stdout
    assert texts(folder) == before, "check mode writes nothing"
    done = render(folder, inventory=small)
    assert done.returncode == 0, done.stdout
    after = texts(folder)
    assert {name.split("/")[1] for name in set(before) - set(after)} == {"epyc-02"}
    assert {name for name in after if after[name] != before[name]} == {
        "manifest.sha256", "pools/epyc9754/run.yml", "cluster/findings.yml"}


@pytest.mark.parametrize(("owner", "path"), [
    ("netplan", "files/etc/netplan/90-aidc-rails.yaml"),
    ("networkmanager", "files/etc/NetworkManager/system-connections/aidc-rail0.nmconnection")])
def test_another_owner(small: Path, owner: str, path: str) -> None:
    done = render(small / ".out", "-e", f"aidc_render_owner={owner}", inventory=small)
    assert done.returncode == 0, done.stdout
    assert "198.51.100.1/31" in (small / ".out/hosts/gb1-01" / path).read_text(encoding="utf-8")


def test_what_cannot_be_rendered_is_named(small: Path) -> None:
    arguments = ("-e", "roce_qos_dscp=64", "-e", "nccl_gate_processes_per_host=3")
    done = render(small / ".out", *arguments, inventory=small)
    assert done.returncode == 2
    assert "pool gb200: processes_per_host: got 3, wanted a divisor of gpus_per_host (4)" in words(done.stdout)
    assert "gb1-01: roce_qos: dscp of 0000:03:00.0: got 64, wanted 0 to 63" in words(done.stdout)
    assert not (small / ".out").exists()
