# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

from lab import image, prune


def test_only_what_nobody_wants_goes(tmp_path: Path) -> None:
    cache, said = tmp_path / "cache", list[str]()
    kept = image.path(cache)
    names = ["image-old", "image-old.apt", "image-used", "image-used.apt", "layer-x-old", "repository-trixie-served",
             "repository-trixie-old", "standin-old", "venv-0", "archive-key", kept.name, f"{kept.name}.apt"]
    for name in names:
        (cache / name).mkdir(parents=True)
        (cache / name / "file").write_text("x" * 5000, encoding="ascii")
    (cache / "image.lock").touch()
    host = tmp_path / "instances/lab/hosts/one/host.json"
    host.parent.mkdir(parents=True)
    host.write_text(json.dumps({"lower": ["/s/instances/lab/guest", str(cache / "image-used")]}), encoding="utf-8")
    www = tmp_path / "instances/lab/www/debian/dists"
    www.mkdir(parents=True)
    (www / "trixie").symlink_to(cache / "repository-trixie-served/dists/trixie")

    freed = prune.prune(tmp_path, said.append)
    assert sorted(path.name for path in cache.iterdir()) == sorted(
        ["archive-key", "image-used", "image-used.apt", "image.lock", "repository-trixie-served", "venv-0",
         kept.name, f"{kept.name}.apt"])
    assert len(said) == 5
    assert freed >= 5 * 5000


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert prune.prune(tmp_path, print) == 0
