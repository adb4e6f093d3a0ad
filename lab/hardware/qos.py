# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a port's QoS: configfs rdma_cm, debugfs cc_params, and what only the OFED driver has (ecn/, tc/, ttl/).

All values are the driver's memory: lost when it goes (mlx5-roce 4.8).
"""
from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable

from lab.hardware.dcbnl import BUFFER_TOTAL, CELL, Dcbnl
from lab.hardware.model import Node as Model
from lab.hardware.nodes import Attr, Dir, Node, fail
from lab.hardware.spec import RailSpec

# Names: mlx5-roce 1.7. Values of the rate parameters: the customary defaults of DCQCN, not from a capture.
CC_PARAMS = {
    "rp_clamp_tgt_rate": "0", "rp_clamp_tgt_rate_ati": "0", "rp_time_reset": "300", "rp_byte_reset": "32767",
    "rp_threshold": "1", "rp_ai_rate": "5", "rp_max_rate": "0", "rp_hai_rate": "50", "rp_min_dec_fac": "50",
    "rp_min_rate": "1", "rp_rate_to_set_on_first_cnp": "0", "rp_dce_tcp_g": "1019", "rp_dce_tcp_rtt": "1",
    "rp_rate_reduce_monitor_period": "4", "rp_initial_alpha_value": "1023", "rp_gd": "11",
    "np_min_time_between_cnps": "4", "np_cnp_dscp": "48", "np_cnp_prio_mode": "0", "np_cnp_prio": "6",
}
CC_LONGEST, U32 = 11, 1 << 32
# OFED's name -> that of cc_params, which is the same value in firmware (mlx5-roce 1.6, 1.7).
ECN_NP = {"cnp_dscp": "np_cnp_dscp", "cnp_802p_prio": "np_cnp_prio",
          "min_time_between_cnps": "np_min_time_between_cnps"}
CM_MODES = ("IB/RoCE v1", "RoCE v2")


def c_number(text: str, most: int, above: int = errno.EINVAL) -> int:
    """A number in any C base: EINVAL for text, ``above`` beyond ``most``."""
    octal = len(text) > 1 and text.startswith("0") and text[1:].isdigit()
    try:
        number = int(text, 8 if octal else 0)
    except ValueError:
        raise fail(errno.EINVAL) from None
    if not 0 <= number <= most:
        raise fail(above if number > most else errno.EINVAL)
    return number


class Memory:
    """Values of one rail in the driver's memory, by name."""

    def __init__(self, model: Model, rail: RailSpec) -> None:
        self.model, self.rail = model, rail

    def get(self, name: str, default: str) -> str:
        return self.model.state.runtime.get((self.rail.rail, name), default)

    def put(self, name: str, value: str) -> None:
        self.model.state.runtime[(self.rail.rail, name)] = value

    def attr(self, name: str, default: str, check: Callable[[str], str], permissions: int = 0) -> Attr:
        return Attr(lambda: self.get(name, default), lambda text: self.put(name, check(text)), permissions)


def cc_params(model: Model, rail: RailSpec) -> Dir:
    """debugfs mlx5/BDF/cc_params: 0600, 32 bit numbers of at most 11 bytes (mlx5-roce 1.7)."""
    memory = Memory(model, rail)

    def check(text: str) -> str:
        if len(text) + 1 > CC_LONGEST:
            raise fail(errno.EINVAL)
        return str(c_number(text, U32 - 1))

    def priority(text: str) -> None:
        # Also sets the mode: a fixed priority (mlx5-roce 1.7).
        memory.put("np_cnp_prio", check(text))
        memory.put("np_cnp_prio_mode", "0")

    files: dict[str, Node] = {name: memory.attr(name, default, check, 0o600) for name, default in CC_PARAMS.items()}
    files["np_cnp_prio"] = Attr(lambda: memory.get("np_cnp_prio", CC_PARAMS["np_cnp_prio"]), priority, 0o600)
    return Dir(files)


class Debugfs(Dir):
    """mlx5/BDF of every function that the driver has; the folders of debugfs are root's alone."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.functions = {rail.pci: (rail, Dir({"cc_params": cc_params(model, rail)})) for rail in model.spec.rails}

    def names(self) -> Iterable[str]:
        return [pci for pci, (rail, _node) in self.functions.items() if self.model.state.rdma(rail.rail)]

    def child(self, name: str) -> Node:
        if name not in self.names():
            raise fail(errno.ENOENT)
        return self.functions[name][1]


def _cm_mode(text: str) -> str:
    if text not in CM_MODES:
        raise fail(errno.EINVAL)
    return text


def cm_device(model: Model, rail: RailSpec) -> Dir:
    """What a folder of configfs rdma_cm holds; the values are the CM device's and outlive it (mlx5-roce 1.8)."""
    memory = Memory(model, rail)
    return Dir({"ports": Dir({"1": Dir({
        "default_roce_mode": memory.attr("cm_mode", "RoCE v2", _cm_mode),
        "default_roce_tos": memory.attr("cm_tos", "0", lambda text: str(c_number(text, 255, errno.ERANGE))),
    })})})


class Configfs(Dir):
    """configfs rdma_cm: a folder appears when somebody makes it, for an RDMA device that there is (mlx5-roce 1.8)."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.devices = {rail.rdma: (rail, cm_device(model, rail)) for rail in model.spec.rails}
        self.made = model.cm_folders

    def names(self) -> Iterable[str]:
        return sorted(self.made)

    def child(self, name: str) -> Node:
        if name not in self.made:
            raise fail(errno.ENOENT)
        return self.devices[name][1]

    def make_dir(self, name: str) -> None:
        if name in self.made:
            raise fail(errno.EEXIST)
        if name not in self.devices or not self.model.state.rdma(self.devices[name][0].rail):
            raise fail(errno.ENODEV)
        self.made.add(name)

    def remove_dir(self, name: str) -> None:
        if name not in self.made:
            raise fail(errno.ENOENT)
        self.made.remove(name)


def port_dcbnl(model: Model, rail: RailSpec) -> Dcbnl:
    return Dcbnl(model.state, rail, lambda: model.port(rail).netdev_mtu, lambda: model.toggle(rail.rail))


class DcbnlDir(Dir):
    """A file for each netdev with dcbnl: the ports, not what is stacked on them."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.ports = [port_dcbnl(model, rail) for rail in model.spec.rails]

    def names(self) -> Iterable[str]:
        state = self.model.state
        return [name for rail in self.model.spec.rails
                if state.bound(rail.rail) and (name := self.model.netdev(rail.rail))]

    def child(self, name: str) -> Node:
        rail = self.model.rail_of_name(name)
        if rail is None or not self.model.state.bound(rail):
            raise fail(errno.ENOENT)
        return Attr(self.ports[rail].text, self.ports[rail].store)


# -- the OFED driver's own files ------------------------------------------------------------------

def traffic_class(model: Model, rail: RailSpec) -> Attr:
    """tc/1/traffic_class: the global rule, and rules for single peers (mlx5-roce 1.5)."""
    memory = Memory(model, rail)

    def rules() -> dict[str, int]:
        found: dict[str, int] = json.loads(memory.get("tc_rules", "{}"))
        return found

    def show() -> str:
        return "\n".join(f"Global tclass={value}" if not peer else f"{peer},tclass={value}"
                         for peer, value in sorted(rules().items()))

    def store(text: str) -> None:
        if len(text) > 100:
            raise fail(errno.EINVAL)
        words = [word for word in text.split(",") if word]
        classes = [word.removeprefix("tclass=") for word in words if word.startswith("tclass=") or "=" not in word]
        peer = ",".join(word for word in words if "=" in word and not word.startswith("tclass="))
        if len(classes) != 1 or ("_ip6=" in peer and "_ip=" in peer):
            raise fail(errno.EINVAL)
        kept = rules()
        if classes[0].startswith("-"):
            kept.pop(peer, None)
        else:
            kept[peer] = c_number(classes[0], 255)
        if len(kept) > 40:
            raise fail(errno.ENOMEM)
        memory.put("tc_rules", json.dumps(kept))

    return Attr(show, store)


def ttl(model: Model, rail: RailSpec) -> Attr:
    return Memory(model, rail).attr("ttl", "64", lambda text: str(c_number(text, 255)))


def rdma_extras(model: Model, rail: RailSpec) -> dict[str, Node]:
    return {"tc": Dir({"1": Dir({"traffic_class": traffic_class(model, rail)})}),
            "ttl": Dir({"1": Dir({"ttl": ttl(model, rail)})})}


def _enable(memory: Memory, name: str) -> Attr:
    """An int of which bit 0 counts; on by default on current firmware (mlx5-roce 1.6, 4.5)."""
    return memory.attr(name, "1", lambda text: str(c_number(text, U32 - 1) & 1))


def ecn(model: Model, rail: RailSpec) -> Dir:
    """ecn/roce_np and roce_rp. NP is one switch for the port, RP one a priority (mlx5-roce 1.6)."""
    memory = Memory(model, rail)

    def number(name: str, default: str) -> Attr:
        return memory.attr(name, default, lambda text: str(c_number(text, U32 - 1)))

    sides: dict[str, Node] = {
        "roce_np": Dir({"enable": Dir({str(n): _enable(memory, "ecn_np") for n in range(8)}),
                        **{name: number(key, CC_PARAMS[key]) for name, key in ECN_NP.items()}}),
        "roce_rp": Dir({"enable": Dir({str(n): _enable(memory, f"ecn_rp_{n}") for n in range(8)})}),
    }
    return Dir(sides)


def netdev_extras(model: Model, rail: RailSpec) -> dict[str, Node]:
    """What the OFED driver adds to a netdev's folder (mlx5-roce 1.6; sample sysfs_qos-1)."""
    port = port_dcbnl(model, rail)

    def buffers() -> str:
        sizes = port.show()["buffer"]["buffer_size"]
        rows = "\n".join(f"{number}\t{size}" for number, size in enumerate(sizes))
        return f"Port buffer size = {BUFFER_TOTAL}\nSpare buffer size = {CELL}\nBuffer\tSize\n{rows}"

    return {"ecn": ecn(model, rail), "qos": Dir({"buffer_size": Attr(buffers)})}
