# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules of the RDMA stack: which are loaded, who holds whom, and which file of the driver is on a host's disk.

A host has no kernel of its own, so /sys/module is the machine's, with the modules of the stack exchanged; what is
loaded is in state.py. Loading takes the file that modprobe would take: updates/ before kernel/ (host-setup 2.3).
"""
from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lab.hardware import gpus
from lab.hardware.model import Node as Model
from lab.hardware.nodes import Attr, Dir, Link, Node, RealDir, RealFile, fail
from lab.hardware.state import Driver, State

# module -> what it uses; the kernel's own stack and, with it, what OFED adds below all others (host-setup 2.3).
USES: dict[str, tuple[str, ...]] = {
    "mlx5_core": (), "ib_core": (), "ib_cm": ("ib_core",), "iw_cm": ("ib_core",), "ib_uverbs": ("ib_core",),
    "mlx5_ib": ("mlx5_core", "ib_core", "ib_uverbs"), "rdma_cm": ("ib_core", "ib_cm", "iw_cm"),
    "rdma_ucm": ("rdma_cm", "ib_core", "ib_uverbs"),
}
OFED_ONLY = ("mlx_compat", "mlxdevm")
_PLACES = ("updates/dkms", "extra", "weak-updates/mlnx-ofa_kernel")
_INBOX_PLACE = "kernel/drivers/net/ethernet/mellanox/mlx5/core"


def uses(state: State) -> dict[str, tuple[str, ...]]:
    """All loaded modules of the stack and those that were put upon it."""
    if state.loaded is None:
        return {}
    found = dict(USES)
    if state.ofed():
        found = {name: (*held, *(("mlxdevm",) if name == "mlx5_core" else ()), "mlx_compat")
                 for name, held in found.items()}
        found.update(mlxdevm=("mlx_compat",), mlx_compat=())
    return {**found, **{name: tuple(held) for name, held in state.holders.items()}}


def holders(state: State, module: str) -> list[str]:
    return [name for name, held in uses(state).items() if module in held]


def in_the_way(state: State) -> tuple[str, str] | None:
    """A module of the stack that cannot be unloaded, and who holds it; rmmod says EBUSY (doca-driver-build#481)."""
    return next(((held[0], name) for name, held in sorted(state.holders.items()) if held), None)


class ClosedFile(RealFile):
    """A file of the machine that a host may read: its parameters act on the machine."""

    def check_open(self, flags: int) -> None:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise fail(errno.EROFS)
        super().check_open(flags)


class ClosedDir(RealDir):
    def child(self, name: str) -> Node:
        node = super().child(name)
        if isinstance(node, RealDir):
            return ClosedDir(node.path, self.translate)
        return ClosedFile(node.path, node.mode) if isinstance(node, RealFile) else node


class Modules(Dir):
    """/sys/module: the real one, with the stack's modules in it and without the machine's own of these names."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.state = model.state
        self.root = os.path.join(model.sysfs, "module")

    def _ours(self) -> set[str]:
        return {*USES, *OFED_ONLY, *self.state.holders, *gpus.USES}

    def names(self) -> Iterable[str]:
        real = set(os.listdir(self.root)) if os.path.isdir(self.root) else set()
        return sorted((real - self._ours()) | set(uses(self.state)) | set(self.state.gpus.loaded))

    def child(self, name: str) -> Node:
        if name in self._ours():
            if name in self.state.gpus.loaded:
                return gpus.module_dir(self.state.gpus, name)
            if name not in uses(self.state):
                raise fail(errno.ENOENT)
            return self._module(name)
        path = os.path.join(self.root, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            return ClosedDir(path, lambda _path, target: target)
        return Link(os.readlink(path)) if stat.S_ISLNK(mode) else ClosedFile(path, mode)

    def _module(self, name: str) -> Dir:
        above = holders(self.state, name)
        attributes: dict[str, Node] = {
            "initstate": Attr("live"), "refcnt": Attr(str(len(above))),
            "taint": Attr("OE" if self.state.ofed() else ""),
            "holders": Dir({holder: Link(f"../../{holder}") for holder in above}),
        }
        loaded = self.state.loaded
        if loaded is not None and name not in self.state.holders:
            attributes["srcversion"] = Attr(loaded.srcversion)
            if loaded.version:
                attributes["version"] = Attr(loaded.version)
        return Dir(attributes)


def proc_modules(state: State) -> str:
    """/proc/modules: name, size, count, holders, state, address (proc(5))."""
    rows = [(name, len(above), above) for name in uses(state) for above in [holders(state, name)]]
    rows += [(name, state.gpus.references(name), state.gpus.holders(name)) for name in state.gpus.loaded]
    return "\n".join(f"{name} 16384 {count} {','.join([*above, '']) or '-'} Live 0x0000000000000000"
                     for name, count, above in rows)


def _opaque(folder: Path) -> bool:
    """Whether what lower layers have in this folder is hidden [Linux, overlayfs.rst]."""
    try:
        return os.getxattr(folder, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def _in_layers(layers: Sequence[Path], path: str) -> Path | None:
    """The file of an overlay, looked up in its layers, the upper one first; a whiteout is a device 0/0."""
    for layer in layers:
        place, hides = layer, False
        for part in path.split("/"):
            place /= part
            try:
                mode = os.lstat(place).st_mode
            except FileNotFoundError:
                break
            if stat.S_ISREG(mode):
                return place
            if not stat.S_ISDIR(mode):
                return None
            hides = hides or _opaque(place)
        if hides:
            return None
    return None


def module_file(layers: Sequence[Path], path: str) -> bytes | None:
    """A module's file as the host sees it; /lib is a link to /usr/lib there."""
    inside = path.lstrip("/")
    found = _in_layers(layers, inside if inside.startswith("usr/") else f"usr/{inside}")
    return None if found is None else found.read_bytes()


def on_disk(layers: Sequence[Path], release: str) -> Driver | None:
    """The driver that modprobe would load, or None: then there is none after a reload (FaaSMem#1)."""
    for place in (*_PLACES, _INBOX_PLACE):
        file = _in_layers(layers, f"usr/lib/modules/{release}/{place}/mlx5_core.ko")
        if file is not None:
            info = gpus.modinfo(file.read_bytes())
            return Driver("inbox" if place == _INBOX_PLACE else "ofed", info.get("version", [""])[0],
                          info.get("srcversion", [""])[0])
    return None


def door(model: Model, privileged: Callable[[], bool]) -> Attr:
    """The lab's own, for init_module and delete_module: a read says what is loaded, a write of "restart" reloads.

    EBUSY while a module that openibd does not unload holds one of the stack. It returns at once; ``busy`` tells.
    """
    state = model.state

    def show() -> str:
        held = in_the_way(state)
        return json.dumps({"busy": model.reloading, "loaded": state.loaded.stack if state.loaded else None,
                           "in_use": f"{held[0]} is in use by: {held[1]}" if held else None})

    def store(text: str) -> None:
        if not privileged():
            raise fail(errno.EACCES)
        if text != "restart":
            raise fail(errno.EINVAL)
        if model.reloading or in_the_way(state):
            raise fail(errno.EBUSY)
        model.reload()

    return Attr(show, store, permissions=0o600)
