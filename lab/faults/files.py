# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a running host's files: a tool replaced, a directory on a full file system.

A change on the disk is written through the host's root and survives a reboot; a mount over a path
goes with the host's mount namespace. Originals are kept outside of the host, in ``keep``.
"""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab import syscalls as sc
from lab.faults.table import FaultError

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Room for what the directory holds; the rest is filled.
SPARE_BYTES = 1 << 20


def within(pid: int, work: Callable[[], Any]) -> Any:
    """Do ``work`` in the mount namespace and root of process ``pid``; its answer goes through JSON."""
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            sc.setns(namespace, sc.CLONE_NEWNS)
            answer: dict[str, Any] = {"ok": work()}
        except BaseException as error:  # goes to the parent; this process has nobody else to tell
            answer = {"error": f"{error}"}
        with contextlib.suppress(OSError):
            os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    os.close(namespace)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text or b'{"error": "the helper process died"}')
    if "ok" not in answer:
        raise FaultError(answer["error"])
    return answer["ok"]


def mounts(pid: int, path: str) -> int:
    """How many mounts are stacked on ``path`` of the host."""
    lines = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines()
    return sum(1 for line in lines if line.split()[4] == path)


def find_tool(pid: int, name: str, follow: bool) -> str:
    """Path of a program in the host's search path. Raises FaultError when it has none of that name."""
    path = within(pid, lambda: shutil.which(name, path=SEARCH))
    if path is None:
        raise FaultError(f"no program {name!r} in the host; searched {SEARCH}")
    return str(within(pid, lambda: os.path.realpath(path)) if follow else path)


def _write_over(path: str, content: bytes, mode: int) -> None:
    """Replace by rename: a program that runs keeps its file."""
    temporary = f"{path}.aidc-lab"
    with open(temporary, "wb") as file:
        file.write(content)
    os.chmod(temporary, mode)
    os.rename(temporary, path)


def _save(folder: int, path: str) -> None:
    """Keep the file at ``path`` in the folder behind a descriptor, which is outside of the host."""
    about = os.lstat(path)
    link = os.readlink(path) if stat.S_ISLNK(about.st_mode) else None
    record = {"path": path, "link": link, "mode": stat.S_IMODE(about.st_mode), "uid": about.st_uid,
              "gid": about.st_gid, "mtime_ns": about.st_mtime_ns}
    content = b"" if link is not None else Path(path).read_bytes()
    for name, data in (("content", content), ("record", json.dumps(record).encode())):
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
    os.rename("record", "saved", src_dir_fd=folder, dst_dir_fd=folder)


def _saved(keep: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads((keep / "saved").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def replace_on_disk(pid: int, keep: Path, tool: str, content: str | None) -> None:
    """Put ``content`` in the place of a tool, or take the tool away (None)."""
    keep.mkdir(parents=True, exist_ok=True)
    saved = _saved(keep)
    if saved is None:
        path, folder = find_tool(pid, tool, follow=False), os.open(keep, os.O_RDONLY | os.O_DIRECTORY)
        try:
            within(pid, lambda: _save(folder, path))
        finally:
            os.close(folder)
    else:
        path = saved["path"]

    def change() -> None:
        if content is not None:
            _write_over(path, content.encode(), 0o755)
        elif os.path.lexists(path):
            os.unlink(path)

    within(pid, change)


def restore_on_disk(pid: int, keep: Path, content: str | None) -> None:
    """Bring the original back, unless somebody has installed another file over the replacement."""
    saved = _saved(keep)
    if saved is not None:
        original = (keep / "content").read_bytes()
        within(pid, lambda: _restore(saved, original, content))
    shutil.rmtree(keep, ignore_errors=True)


def _restore(saved: dict[str, Any], original: bytes, content: str | None) -> None:
    path = saved["path"]
    if content is None and os.path.lexists(path):
        return
    if content is not None and os.path.exists(path) and Path(path).read_bytes() != content.encode():
        return
    if saved["link"] is not None:
        temporary = f"{path}.aidc-lab"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        os.symlink(saved["link"], temporary)
        os.rename(temporary, path)
    else:
        _write_over(path, original, saved["mode"])
    os.lchown(path, saved["uid"], saved["gid"])
    if saved["link"] is None:
        os.chmod(path, saved["mode"])  # again: chown takes the set-user-ID bit away
    os.utime(path, ns=(saved["mtime_ns"], saved["mtime_ns"]), follow_symlinks=False)


def mount_over(pid: int, keep: Path, tool: str, content: str) -> None:
    """Hide a tool behind a mount of a file from outside."""
    path = find_tool(pid, tool, follow=True)
    if mounts(pid, path):
        return
    keep.mkdir(parents=True, exist_ok=True)
    source = keep / "replacement"
    source.write_text(content, encoding="utf-8")
    source.chmod(0o755)
    (keep / "path").write_text(path, encoding="utf-8")
    # A detached mount of this namespace may be put into another one, a path may not (open_tree(2)).
    _attach(pid, lambda: str(source), path)


def _attach(pid: int, prepare: Callable[[], str], target: str) -> None:
    """Put a mount of the path that ``prepare`` makes on ``target`` of the host; it is nowhere else afterwards."""
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

    def work() -> None:
        sc.unshare(sc.CLONE_NEWNS)
        sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
        tree = sc.open_tree(prepare())
        sc.setns(namespace, sc.CLONE_NEWNS)
        sc.move_mount(tree, target)

    try:
        within(os.getpid(), work)
    finally:
        os.close(namespace)


def unmount(pid: int, keep: Path) -> None:
    """Take away what ``mount_over`` put there; nothing is there after a reboot."""
    with contextlib.suppress(FileNotFoundError):
        path = (keep / "path").read_text(encoding="utf-8")
        if mounts(pid, path):
            within(pid, lambda: sc.umount2(path, sc.MNT_DETACH))
    shutil.rmtree(keep, ignore_errors=True)


def copy_tree(source: Path, target: Path) -> None:
    """Make ``target`` equal to ``source``: contents, kinds, modes, owners, times. What is equal stays untouched."""
    for gone in {item.name for item in target.iterdir()} - {item.name for item in source.iterdir()}:
        _remove(target / gone)
    for item in sorted(source.iterdir()):
        _copy_one(item, target / item.name)


def _copy_one(item: Path, other: Path) -> None:
    about = item.lstat()
    if os.path.lexists(other) and stat.S_IFMT(other.lstat().st_mode) != stat.S_IFMT(about.st_mode):
        _remove(other)
    if stat.S_ISLNK(about.st_mode):
        if not other.is_symlink() or os.readlink(other) != os.readlink(item):
            other.unlink(missing_ok=True)
            other.symlink_to(os.readlink(item))
        return
    if stat.S_ISDIR(about.st_mode):
        other.mkdir(exist_ok=True)
        copy_tree(item, other)
    elif not stat.S_ISREG(about.st_mode):
        return  # sockets and devices are not configuration
    elif not other.exists() or other.read_bytes() != item.read_bytes():
        shutil.copyfile(item, other)
    have = other.lstat()
    if (have.st_uid, have.st_gid, have.st_mode) != (about.st_uid, about.st_gid, about.st_mode):
        os.chown(other, about.st_uid, about.st_gid)
        os.chmod(other, stat.S_IMODE(about.st_mode))
    if have.st_mtime_ns != about.st_mtime_ns:
        os.utime(other, ns=(about.st_mtime_ns, about.st_mtime_ns))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _inside(pid: int, directory: str) -> Path:
    """``directory`` of the host as this process reaches it."""
    real = within(pid, lambda: os.path.realpath(directory) if os.path.isdir(directory) else None)
    if real is None:
        raise FaultError(f"no directory {directory!r} in the host")
    return Path(f"/proc/{pid}/root{real}")


def fill(pid: int, keep: Path, directory: str) -> None:
    """Put ``directory`` on a small file system of its own, which holds the same files and is full."""
    source = _inside(pid, directory)
    target = str(source).removeprefix(f"/proc/{pid}/root")
    if mounts(pid, target):
        return
    (keep / "mount").mkdir(parents=True, exist_ok=True)
    (keep / "path").write_text(target, encoding="utf-8")
    size = sum(item.lstat().st_size + 4096 for item in source.rglob("*") if item.is_file()) + SPARE_BYTES

    def prepare() -> str:
        sc.mount("full", str(keep / "mount"), "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, f"size={size},mode=755")
        tree = keep / "mount/tree"
        tree.mkdir()
        copy_tree(source, tree)
        about = source.stat()
        os.chown(tree, about.st_uid, about.st_gid)
        os.chmod(tree, stat.S_IMODE(about.st_mode))
        # Beside the tree, so that nobody in the host sees what fills it.
        with contextlib.suppress(OSError), open(keep / "mount/filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        os.utime(tree, ns=(about.st_mtime_ns, about.st_mtime_ns))
        return str(tree)

    _attach(pid, prepare, target)


def free(pid: int, keep: Path) -> None:
    """Room again. What was changed meanwhile (a file cut to nothing, one removed) stays changed, as on a real disk."""
    try:
        target = (keep / "path").read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    there, after = Path(f"/proc/{pid}/root{target}"), keep / "after"
    if mounts(pid, target):
        shutil.rmtree(after, ignore_errors=True)
        after.mkdir()
        copy_tree(there, after)
        (keep / "complete").touch()
        within(pid, lambda: sc.umount2(target, sc.MNT_DETACH))
    if (keep / "complete").exists():
        copy_tree(after, there)
    shutil.rmtree(keep, ignore_errors=True)
