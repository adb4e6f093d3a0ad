#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_database
short_description: The database of slurmdbd in the host's own MariaDB
version_added: 0.1.0
description:
  - Makes a password once, and with it the user and the database that C(slurmdbd) uses, which itself makes the tables.
  - The password is in O(password_file) alone, as the line C(StoragePass=) that C(slurmdbd.conf) includes. A password
    that somebody has put there stays, and the database's user gets it.
  - It is never an argument of a program, in a result or in a diff.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: RV(before) and RV(after) tell what is there; a password has no diff.
  idempotent:
    support: full
options:
  password_file:
    description: File with the password, mode 0600.
    type: str
    default: /etc/slurm/slurmdbd-secret.conf
  owner:
    description: User that C(slurmdbd) runs as (C(SlurmUser)); it owns the file.
    type: str
    default: slurm
  database:
    description: Name of the database (C(StorageLoc)).
    type: str
    default: slurm_acct_db
  user:
    description: Name of the database's user (C(StorageUser)).
    type: str
    default: slurm
  host:
    description: From where that user comes, and C(StorageHost).
    type: str
    default: localhost
seealso:
  - module: aidc.gpu_cluster.munge_key
notes:
  - Needs root, which MariaDB lets in over its socket. A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart.
"""

EXAMPLES = r"""
- name: The database of slurmdbd
  aidc.gpu_cluster.slurm_database:
  become: true
"""

RETURN = r"""
before:
  description: What was there.
  returned: success
  type: dict
  contains: &state
    password_file:
      description: Whether the file has a password and is its owner's alone.
      type: bool
      sample: true
    database:
      description: Whether the database is there.
      type: bool
      sample: true
    user:
      description: Whether the user is there.
      type: bool
      sample: true
    login:
      description: Whether the user comes in with the file's password and may do all in the database.
      type: bool
      sample: true
after:
  description: What is there now; in check mode, what would be.
  returned: success
  type: dict
  contains: *state
commands:
  description: What was done, in check mode what would be done.
  returned: always
  type: list
  elements: list
  sample:
    - [write, /etc/slurm/slurmdbd-secret.conf]
    - [create, database, slurm_acct_db]
    - [create, user, slurm@localhost]
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: mariadb
    got:
      description: What was found.
      type: str
      sample: "exit status 1: ERROR 2002 (HY000): Can't connect to local server through socket"
    wanted:
      description: What was wanted.
      type: str
      sample: an answer
    hint:
      description: What to do.
      type: str
      sample: is mariadb.service running?
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.database import configure

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    # A path, and no password.
    "password_file": {"type": "str", "default": "/etc/slurm/slurmdbd-secret.conf", "no_log": False},
    "owner": {"type": "str", "default": "slurm"},
    "database": {"type": "str", "default": "slurm_acct_db"},
    "user": {"type": "str", "default": "slurm"},
    "host": {"type": "str", "default": "localhost"},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = configure(Machine(), module.params, module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
