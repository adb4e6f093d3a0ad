# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What a run that did not end well leaves on its other hosts: ended over SSH, with the key of the run.

The launcher takes its ranks with it, and its daemons go when the launcher is gone. This is for what does not: the
next run on the same hosts must not measure beside it.
"""
from __future__ import annotations

import subprocess
import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._access.model import MARK_VARIABLE, PART_SEPARATOR
from .launch import Host, Job

# Connecting (ssh_config), TERM, and two times KILL.
TIMEOUT_SECONDS = 30.0
PARALLEL = 16
# On a host other than the head only one launch of the run is at work at a time, so all of the run is meant: its daemon
# has the run's mark without the part, from the key's forced command. The list is made before anything is started, and
# the shell leaves itself and its parent out. A zombie has no environment.
_SCRIPT = r"""
for signal in TERM KILL KILL ""; do
  found=
  for path in /proc/[0-9]*; do
    pid=${path#/proc/}
    [ "$pid" = "$$" ] || [ "$pid" = "$PPID" ] && continue
    grep -qzE '^@VARIABLE@=@RUN@($|@SEPARATOR@)' "$path/environ" 2>/dev/null || continue
    found="$found $pid"
    [ -z "$signal" ] || kill -"$signal" "$pid" 2>/dev/null
  done
  [ -n "$found" ] || exit 0
  [ -z "$signal" ] || sleep 1
done
echo "$found"
exit 1
"""


def script(run_id: str) -> str:
    return (_SCRIPT.replace("@VARIABLE@", MARK_VARIABLE).replace("@RUN@", run_id)
            .replace("@SEPARATOR@", "\\" + PART_SEPARATOR))


def end_on(job: Job, hosts: t.Sequence[Host]) -> list[str]:
    """End them on these hosts, which must not be the head; what could not be done, by host."""
    text = script(job.run_id)

    def one(host: Host) -> str:
        argv = ["ssh", "-F", job.file("ssh_config"), host.address, "/bin/sh"]
        try:
            done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
                                  check=False)
        except subprocess.TimeoutExpired:
            return f"{host.name}: no answer within {TIMEOUT_SECONDS:g} s"
        except OSError as error:
            return f"ssh: {error.strerror}"
        if done.returncode == 1 and done.stdout.strip():
            return f"{host.name}: processes {done.stdout.strip()} are still there"
        return "" if done.returncode == 0 else f"{host.name}: {' '.join(done.stderr.split())[-200:] or 'no result'}"

    with ThreadPoolExecutor(PARALLEL) as pool:
        return [text for text in pool.map(one, hosts) if text]
