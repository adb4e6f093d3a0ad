# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes what older versions of the checkout built: images, layers, stand-ins, package repositories.

What this version would build again under the same name stays, and what the hosts of a running lab stand on.
"""
from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from lab import image, kernel, layer, personas
from lab.repository import build as repository
from lab.standin import build as standin

KINDS = ("image-", "layer-", "standin-", "repository-")


def wanted(cache: Path) -> set[str]:
    """Names that this version of the checkout uses."""
    names = set()
    for suite in image.SUITES:
        base = image.path(cache, suite)
        programs = standin.path(cache, base)
        names.add(f"layer-{kernel.NAME}-{layer.key((base,), kernel.body())}")
        names |= {base.name, image.apt_sources(base).name, programs.name,
                  repository.path(cache, base, programs, suite).name}
    for persona in personas.PERSONAS.values():
        if persona.body:
            key = layer.key((image.path(cache, persona.suite),), persona.body)
            names.add(f"layer-{persona.name}-{key}")
    return names


def in_use(instances: Path) -> set[str]:
    """Names of what the hosts of labs that are up stand on, and of what their mirrors serve."""
    names = set()
    for record in instances.glob("*/hosts/*/host.json"):
        for lower in json.loads(record.read_text(encoding="utf-8"))["lower"]:
            names |= {Path(lower).name, f"{Path(lower).name}.apt"}
    for link in instances.glob("*/www/debian/*/*"):
        names.add(link.readlink().parents[1].name)
    return names


def prune(state: Path, say: Callable[[str], None]) -> int:
    """Remove what nobody wants; the bytes that were freed."""
    cache, freed = state / "cache", 0
    keep = wanted(cache) | in_use(state / "instances")
    for path in sorted(cache.iterdir() if cache.is_dir() else ()):
        if path.is_dir() and path.name.startswith(KINDS) and path.name not in keep:
            size = image.size_bytes(path)
            shutil.rmtree(path)
            freed += size
            say(f"removed {path} ({size // 1_000_000} MB)")
    return freed
