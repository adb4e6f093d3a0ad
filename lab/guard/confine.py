# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The barriers that the kernel keeps: capabilities that a host lacks, and mounts that stay as they are."""
from __future__ import annotations

import errno
import os
import signal

from lab import syscalls as sc

# linux/capability.h. Immutable files would outlive `down`; the others act on the machine: modules, I/O ports,
# process accounting, clock, device files, LSM rules, kernel log, alarms and sleep, audit, tracing and BPF.
DROPPED_CAPABILITIES = {
    "LINUX_IMMUTABLE": 9, "SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_PACCT": 20, "SYS_TIME": 25, "MKNOD": 27,
    "AUDIT_CONTROL": 30, "MAC_OVERRIDE": 32, "MAC_ADMIN": 33, "SYSLOG": 34, "WAKE_ALARM": 35, "BLOCK_SUSPEND": 36,
    "AUDIT_READ": 37, "PERFMON": 38, "BPF": 39,
}


def drop_capabilities() -> None:
    for number in DROPPED_CAPABILITIES.values():
        try:
            sc.capbset_drop(number)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a kernel that does not know it yet
                raise


def lock_mounts() -> None:
    """Into a copy of our mount namespace in which the present mounts are locked (mount_namespaces(7)).

    The copy belongs to a user namespace in which nobody is, so the kernel takes its mounts for those of
    somebody with more rights: nobody in it, root included, can unmount them, look below them or make a read-only
    one writable again, and copies of them are the same. Our user namespace, and with it all of root's rights,
    stays what it is.
    """
    reading, writing = os.pipe()
    ending, end = os.pipe()
    child = os.fork()
    if child == 0:
        sc.set_pdeathsig(signal.SIGKILL)
        try:
            os.close(end)
            sc.unshare(sc.CLONE_NEWUSER | sc.CLONE_NEWNS)
            os.write(writing, b"r")
            os.read(ending, 1)
        except OSError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.close(ending)
    said = os.read(reading, 4096)
    os.close(reading)
    if said != b"r":
        raise OSError(errno.EPERM, f"locking the mounts: {said.decode()}")
    process = os.pidfd_open(child)
    sc.setns(process, sc.CLONE_NEWNS)
    os.close(process)
    os.close(end)
    os.waitpid(child, 0)
