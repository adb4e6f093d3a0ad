# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No address of a mirror or of a download stands in the collection, except below the variable aidc_sources.

The rule, for roles/, playbooks/, plugins/, inventories/, molecule/ and site.yml:

- An address is a URL (http, https, ftp, rsync, oci), a `deb` line with a host or a path, or a literal value of a key or
  an option of a package source: `baseurl=`, `URIs:`, `mirrorlist:` ... A template such as {{ aidc_sources.debian }}
  is none.
- YAML: every key and value counts, except what is below a key `aidc_sources`, and texts for the reader: description,
  short_description, notes, seealso, fail_msg, and `name` of a play or task. Comments do not count.
- Python: every string constant counts, except docstrings and DOCUMENTATION, RETURN, EXAMPLES (there: example hosts).
- Any other file (templates, files): every line counts, except lines that are comments. *.md is for the reader.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("roles", "playbooks", "plugins", "inventories", "molecule", "site.yml")
SOURCES = "aidc_sources"
# Texts for the reader.
PROSE = {"description", "short_description", "notes", "seealso", "fail_msg", "success_msg"}
# Names of formats that look like addresses; nothing is fetched from there.
IDENTIFIERS = ("https://json-schema.org/draft/", "http://www.w3.org/")
# Hosts that documentation may use (RFC 2606).
EXAMPLE_HOST = re.compile(r"^\w+://([\w.-]+\.)?example(\.(com|net|org))?([:/]|$)")
URL = re.compile(r"\b(?:https?|ftps?|rsync|oci)://[\w\[][^\s'\"<>|)]*", re.I)
DEB_LINE = re.compile(r"(?:^|['\"\n])\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(?!\{)\S*[/.]\S*\s+\S+")
# Keys and options whose value is the address of a package source, in apt, dnf, pip, containers.
KEYS = {
    "baseurl", "mirrorlist", "metalink", "uris", "uri", "url", "repo", "mirror", "mirrors", "proxy", "gpgkey",
    "signed_by", "index_url", "extra_index_url", "registry", "keyserver",
}
OPTION = re.compile(r"^\s*(?:baseurl|mirrorlist|metalink|uris|gpgkey|index-url|acquire::\w+::proxy|proxy|pin)"
                    r"\s*[:=]\s*(?!\s)(.+)$", re.I | re.M)
HOST = re.compile(r"(?<![\w./-])(?:[a-z0-9-]+\.)+[a-z]{2,}(?![\w.])", re.I)
TEMPLATE = re.compile(r"\{[{%].*?[%}]\}", re.S)


class Loader(yaml.SafeLoader):
    """Ansible's own tags (!vault, !unsafe) are plain values here."""


def _any(loader: Loader, _suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    assert isinstance(node, yaml.MappingNode)
    return loader.construct_mapping(node, deep=True)


Loader.add_multi_constructor("!", _any)


def addresses(text: str) -> list[str]:
    """What is an address in ``text`` by its form."""
    # What a template puts in comes from a variable, and a variable's value is looked at where it is set.
    plain = TEMPLATE.sub("{}", text)
    found = [url for url in URL.findall(plain) if not url.startswith(IDENTIFIERS)]
    found += [line.strip().strip("'\"") for line in DEB_LINE.findall(plain)]
    found += [host for value in OPTION.findall(plain) for host in HOST.findall(value)]
    return found


def in_value(key: str, value: str) -> list[str]:
    """Also the bare host names, where the key tells that an address is meant."""
    return addresses(value) or (HOST.findall(TEMPLATE.sub("{}", value)) if key in KEYS else [])


def names_itself(data: dict[Any, Any]) -> bool:
    """A play, block or task: its `name` is for the reader; that of a package may be a URL."""
    return any(str(key) in ("hosts", "block") or "." in str(key) for key in data)


def in_yaml(data: Any, key: str = "") -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            prose = name in PROSE or (name == "name" and names_itself(data))
            if name == SOURCES or (prose and not isinstance(value, dict)):
                continue
            yield from addresses(str(name))
            yield from in_yaml(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from in_yaml(value, key)
    elif isinstance(data, str):
        yield from in_value(key, data)


def documentation(tree: ast.Module) -> tuple[set[int], list[str]]:
    """The nodes that are documentation, and the addresses in EXAMPLES with a host that is no example."""
    ids: set[int] = set()
    strange: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                ids.add(id(first.value))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if names & {"DOCUMENTATION", "RETURN", "EXAMPLES"}:
                ids.add(id(node.value))
            if "EXAMPLES" in names:
                strange += [found for found in addresses(str(node.value.value)) if not EXAMPLE_HOST.match(found)]
    return ids, strange


def in_python(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    skipped, strange = documentation(tree)
    yield from strange
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield from addresses(node.value)


def in_text(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.lstrip().startswith(("#", "//", ";")):
            yield from addresses(line)


def in_file(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return list(in_python(text))
    if file.suffix in (".yml", ".yaml"):
        return [found for data in yaml.load_all(text, Loader) for found in in_yaml(data)]
    return list(in_text(text))


def files(root: Path) -> list[Path]:
    found = [path for top in TOPS for path in (root / top, *sorted((root / top).rglob("*")))]
    return [path for path in found if path.is_file() and not path.is_symlink()
            and path.suffix not in (".md", ".pyc") and not {".state", ".rendered"} & set(path.parts)]


def findings(root: Path) -> list[str]:
    return [f"{file.relative_to(root)}: {found}" for file in files(root) for found in in_file(file)]


def test_no_address_outside_aidc_sources() -> None:
    assert len(files(ROOT)) > 100
    assert findings(ROOT) == [], "put it below the variable aidc_sources of the inventory"


TASK = """
# Source: https://packages.site.org/debian (a comment)
- name: Packages, see https://wiki.debian.org/SourcesList
  hosts: all
  tasks:
    - name: Source
"""
BAD = {
    "a mirror in a task": ("playbooks/x.yml", TASK + """
      ansible.builtin.deb822_repository: {name: x, uris: ["http://mirror.example.com/debian"], suites: [trixie]}
""", "http://mirror.example.com/debian"),
    "a mirror by its host": ("playbooks/x.yml", TASK + """
      ansible.builtin.deb822_repository: {name: x, uris: [packages.site.org], suites: [trixie]}
""", "packages.site.org"),
    "a deb line": ("playbooks/x.yml", TASK + """
      ansible.builtin.apt_repository: {repo: "deb [trusted=yes] file:/srv/repo ./"}
""", "deb [trusted=yes] file:/srv/repo ./"),
    "a package": ("playbooks/x.yml", TASK + """
      ansible.builtin.dnf: {name: "https://m.example.com/x.rpm"}
""", "https://m.example.com/x.rpm"),
    "an option in a text": ("playbooks/x.yml", TASK + """
      ansible.builtin.copy: {dest: /etc/yum.repos.d/x.repo, content: "[x]\\nbaseurl = mirror.example.com/el9\\n"}
""", "mirror.example.com"),
    "a default of a role": ("roles/x/defaults/main.yml", "---\nx_key_url: https://keys.example.com/x.asc\n",
                            "https://keys.example.com/x.asc"),
    "a variable with another name": ("inventories/x/group_vars/all.yml", "---\nmirrors: {debian: 'ftp://a.example/d'}\n",
                                     "ftp://a.example/d"),
    "a part of it in a template": ("playbooks/x.yml", TASK + """
      ansible.builtin.get_url: {url: "https://a.example/{{ version }}/x.deb", dest: /root/x}
""", "https://a.example/{}/x.deb"),
    "a constant": ("plugins/modules/x.py", '"""Docs: https://docs.example.com"""\nMIRROR = "https://m.example.com/debian"\n',
                   "https://m.example.com/debian"),
    "a part of an f-string": ("plugins/modules/x.py", 'def f(x):\n    return f"https://m.example.com/{x}"\n',
                              "https://m.example.com/"),
    "a real host in the examples": ("plugins/modules/x.py", 'EXAMPLES = "url: https://packages.site.org/debian"\n',
                                    "https://packages.site.org/debian"),
    "a template": ("roles/x/templates/x.sources.j2", "Types: deb\nURIs: packages.site.org/debian\n",
                   "packages.site.org"),
    "a template of a list": ("roles/x/templates/x.list.j2", "deb http://a.example/debian trixie main\n",
                             "http://a.example/debian"),
    "a vaulted neighbour": ("inventories/x/group_vars/all.yml", "---\na: !vault |\n  123\nb: https://b.example/\n",
                            "https://b.example/"),
}
GOOD = {
    "the variable": ("inventories/x/group_vars/all.yml",
                     "---\naidc_sources:\n  debian: {uris: ['http://mirror.example.com/debian']}\n"),
    "a use of it": ("playbooks/x.yml", TASK + """
      ansible.builtin.deb822_repository: {name: x, uris: "{{ aidc_sources.debian.uris }}", suites: [trixie]}
"""),
    "a deb line of it": ("roles/x/templates/x.list.j2",
                         "# deb https://a.example/debian trixie main\ndeb {{ aidc_sources.debian.uri }} trixie main\n"),
    "a path with it": ("playbooks/x.yml", TASK + """
      ansible.builtin.get_url: {url: "{{ aidc_sources.cuda }}/x.deb", dest: /root/x}
"""),
    "documentation": ("plugins/modules/x.py", 'DOCUMENTATION = """\nseealso: [{link: https://docs.kernel.org/}]"""\n'
                      'EXAMPLES = """\nurl: https://mirror.example.com/debian"""\n# https://a.example/\n'),
    "specification": ("roles/x/meta/argument_specs.yml",
                      "---\noptions: {x: {description: ['See https://docs.kernel.org/'], type: str}}\n"),
    "names with dots": ("playbooks/x.yml", TASK + """
      ansible.builtin.debug: {msg: "nvidia.com/gpu on node1.example by aidc.gpu_cluster.mlx5_info"}
"""),
    "a README": ("roles/x/README.md", "https://a.example/\n"),
    "a schema's name": ("plugins/x.py", 'SCHEMA = "https://json-schema.org/draft/2020-12/schema"\n'),
}


def tree(root: Path, name: str, text: str) -> Path:
    for top in TOPS[:-1]:
        (root / top).mkdir()
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("what", BAD)
def test_an_address_outside_is_found(tmp_path: Path, what: str) -> None:
    name, text, address = BAD[what]
    found = findings(tree(tmp_path, name, text))
    assert f"{name}: {address}" in found
    assert all(address.split()[-1].rsplit("/", 1)[0] in line for line in found)


@pytest.mark.parametrize("what", GOOD)
def test_what_is_allowed(tmp_path: Path, what: str) -> None:
    assert findings(tree(tmp_path, *GOOD[what])) == []


def test_a_mirror_in_a_playbook_of_this_collection_is_found(tmp_path: Path) -> None:
    """The real site.yml with one task more: the rule holds beside everything that it lets pass."""
    text = (ROOT / "playbooks" / "fabric.yml").read_text(encoding="utf-8") + """
  tasks:
    - name: Source
      ansible.builtin.apt_repository:
        repo: deb https://mirror.example.com/debian trixie main
"""
    found = findings(tree(tmp_path, "playbooks/fabric.yml", text))
    assert found and all("mirror.example.com" in line for line in found)
