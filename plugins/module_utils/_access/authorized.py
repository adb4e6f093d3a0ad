# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Our line in an authorized_keys file. Pure, and in bytes: lines of others stay as they are, byte for byte.

Our line goes to the top, so that a last line without a line end needs no change and taking ours out
gives back exactly the file that was there.
"""
from __future__ import annotations

import re
import time
import typing as t

from .model import MARK_VARIABLE

PUBLIC_KEY = re.compile(r"(ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521)|ssh-rsa) [A-Za-z0-9+/]+={0,3}")
ADDRESS = re.compile(r"[0-9a-fA-F:.]+")
_OURS = re.compile(rb"restrict,[^\r\n]* [A-Za-z0-9+/]+={0,3} aidc-run=([A-Za-z0-9][A-Za-z0-9_-]{2,63})")


def line(public_key: str, run_id: str, addresses: t.Sequence[str], until: float) -> bytes:
    """The key may be used from ``addresses`` until ``until``, without terminal and forwarding.

    The forced command sets the run's mark, so that what the key starts can be found and ended
    (PRRTE's daemon among it). expiry-time is local time: the form with Z needs OpenSSH 9.1.
    """
    expiry = time.strftime("%Y%m%d%H%M%S", time.localtime(until))
    command = f'/usr/bin/env {MARK_VARIABLE}={run_id} /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"'
    options = f'restrict,from="{",".join(addresses)}",expiry-time="{expiry}",command="{command}"'
    return f"{options} {public_key} aidc-run={run_id}".encode("ascii")


def run_of(text: bytes) -> str | None:
    """The run that this line belongs to; None for a line that is not ours."""
    found = _OURS.fullmatch(text)
    return found[1].decode("ascii") if found else None


def runs_of(text: bytes) -> list[str]:
    return [run for run in map(run_of, text.split(b"\n")) if run is not None]


def edit(text: bytes, drop: t.Container[str], add: bytes | None = None) -> bytes:
    """``text`` without our lines of the runs in ``drop``, with the line ``add``."""
    kept = [part for part in text.split(b"\n") if (run := run_of(part)) is None or run not in drop]
    if add is not None:
        kept.insert(0, add)
    return b"\n".join(kept) if text or add is None else add + b"\n"
