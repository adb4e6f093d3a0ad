# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Node classes as the command line knows them: data. An inventory says the same of its own hosts.

`Hardware` gives the limit, `Wanted` what the way of the data must show. None: it differs between sites.
"""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError, Problem
from .cause import Wanted
from .hardware import Hardware

# The first three are the collection's own classes (facts 3.1); the others are the common 8-GPU boards of the table
# of published figures (facts 3.2).
CLASSES: dict[str, tuple[Hardware, Wanted]] = {
    "gb200": (Hardware("gb200", "GB200", 4, "nvlink", 4, 400, domain_nodes=18),
              Wanted(rdma=True, gdr=True, nvls=True, hcas=4)),
    # No peer-to-peer over NVLink, and GPUDirect depends on the server's PCIe layout.
    "l40s": (Hardware("l40s", "L40S", 4, "pcie", 2, 200), Wanted(rdma=True)),
    "epyc9754": (Hardware("epyc9754", nics=1, nic_gbit=100), Wanted(rdma=True)),
    "a100": (Hardware("a100", "A100", 8, "nvlink", 8, 200), Wanted(rdma=True, gdr=True, hcas=8)),
    "h100": (Hardware("h100", "H100", 8, "nvlink", 8, 400), Wanted(rdma=True, gdr=True, nvls=True, hcas=8)),
    "h200": (Hardware("h200", "H200", 8, "nvlink", 8, 400), Wanted(rdma=True, gdr=True, nvls=True, hcas=8)),
    "b200": (Hardware("b200", "B200", 8, "nvlink", 8, 400), Wanted(rdma=True, gdr=True, nvls=True, hcas=8)),
}
_YES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_INTEGERS = ("gpus_per_node", "nics", "mtu_bytes", "domain_nodes")
_WANTED = tuple(one.name for one in dataclasses.fields(Wanted) if one.name != "hcas")
_SETTABLE = (*_INTEGERS, "nic_gbit", *_WANTED)


def node_class(name: str, changes: t.Sequence[str] = ()) -> tuple[Hardware, Wanted]:
    """The class with what this site changes in it, each ``KEY=VALUE``."""
    if name not in CLASSES:
        raise AidcError([Problem("--class", repr(name), f"one of {', '.join(sorted(CLASSES))}",
                                 "or give --min-busbw instead")])
    hardware, wanted = CLASSES[name]
    for change in changes:
        key, _equals, text = change.partition("=")
        if key not in _SETTABLE:
            raise AidcError([Problem("--set", repr(change), f"KEY=VALUE with KEY one of {', '.join(_SETTABLE)}")])
        value = _value(key, text)
        if key in _WANTED:
            wanted = dataclasses.replace(wanted, **{key: value})
        else:
            hardware = dataclasses.replace(hardware, **{key: value})
    # Who changes the number of NICs changes what NCCL must show, too.
    return hardware, dataclasses.replace(wanted, hcas=hardware.nics if wanted.hcas else None)


def _value(key: str, text: str) -> t.Any:
    if key in _WANTED:
        if text.lower() not in _YES:
            raise AidcError([Problem(f"--set {key}", repr(text), "true or false")])
        return _YES[text.lower()]
    try:
        value = int(text) if key in _INTEGERS else float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise AidcError([Problem(f"--set {key}", repr(text), "a number, 0 or more")])
    return value
