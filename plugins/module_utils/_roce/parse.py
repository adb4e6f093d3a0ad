# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what dcb, mlnx_qos, ethtool and the kernel's files say. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import json
import re
import typing as t

from .model import DSCPS, PRIORITIES, TCS, State

_ROW = re.compile(r"\t(priority|enabled|buffer)((?:\s+\d+)+)\s*")
_MAPPING = re.compile(r"\tprio:(\d) dscp:((?:\d\d,)+)")
_TC = re.compile(r"tc: (\d) ratelimit: (?:unlimited|[\d.]+ Gbps), tsa: (strict|vendor|ets)(?:, bw: (\d+)%)?")


def _list(data: t.Any, length: int, kinds: type | tuple[type, ...], what: str) -> list[t.Any]:
    if not isinstance(data, list) or len(data) != length or not all(isinstance(item, kinds) for item in data):
        raise ValueError(f"{what} is not a list of {length}")
    return data


def json_documents(text: str) -> list[dict[str, t.Any]]:
    """The objects of ``dcb -j -b FILE``: one for each command, between them a comma
    [iproute2 lib/json_writer.c: all commands of a batch share one writer]."""
    decoder, at = json.JSONDecoder(), 0
    found: list[dict[str, t.Any]] = []
    while True:
        while at < len(text) and text[at] in ", \t\r\n":
            at += 1
        if at == len(text):
            return found
        document, at = decoder.raw_decode(text, at)
        if not isinstance(document, dict):
            raise ValueError("a document that is no object")
        found.append(document)


def _ets(prio_tc: list[int], tsa: list[str], bandwidth: list[int]) -> dict[str, t.Any]:
    """mlx5 reports 100 for a class that is not ets; it has no share, so 0 [mlx5 en_dcbnl.c, ..._ieee_getets]."""
    shares = [share if kind == "ets" else 0 for share, kind in zip(bandwidth, tsa)]
    return {"prio_tc": prio_tc, "tc_tsa": tsa, "tc_bw": shares}


def _map(entries: t.Iterable[tuple[int, int]]) -> list[int]:
    """DSCPs without an entry have priority 0 in hardware [mlx5 en_dcbnl.c, mlx5e_dcbnl_ieee_delapp]."""
    found = [0] * DSCPS
    for dscp, priority in entries:
        if not (0 <= dscp < DSCPS and 0 <= priority < PRIORITIES):
            raise ValueError(f"DSCP {dscp} with priority {priority}")
        found[dscp] = priority
    return found


def dcb_json(kind: str, data: dict[str, t.Any]) -> State:
    """Groups in the object of ``dcb -j KIND show``."""
    if kind == "pfc":
        enabled = _list(data.get("prio_pfc"), PRIORITIES, bool, "prio_pfc")
        return {"pfc": [number for number, on in enumerate(enabled) if on], "cable_length": int(data["delay"])}
    if kind == "ets":
        return {"ets": _ets(_list(data.get("prio_tc"), PRIORITIES, int, "prio_tc"),
                            _list(data.get("tc_tsa"), TCS, str, "tc_tsa"), _list(data.get("tc_bw"), TCS, int, "tc_bw"))}
    if kind == "app":
        # No key without entries; iproute2 before 6.3 adds a third item " " to each entry.
        entries = data.get("dscp_prio", [])
        return _app([(int(entry[0]), int(entry[1])) for entry in entries])
    if kind == "buffer":
        return {"buffer": {"prio_buffer": _list(data.get("prio_buffer"), PRIORITIES, int, "prio_buffer"),
                           "buffer_size": _list(data.get("buffer_size"), PRIORITIES, int, "buffer_size")},
                "buffer_total": int(data["total_size"])}
    return {"dcbx": "host" if data.get("host") else "firmware"}


def _app(entries: list[tuple[int, int]]) -> State:
    """The first DSCP entry turns trust to dscp, deleting the last one to pcp [mlx5 en_dcbnl.c]."""
    state: State = {"trust": "dscp" if entries else "pcp", "dscp_map": _map(entries)}
    if len({dscp for dscp, _priority in entries}) != DSCPS:
        # Not the whole table: an entry that is missing is no entry for priority 0, which the map cannot say.
        state["dscp_missing"] = sorted(set(range(DSCPS)) - {dscp for dscp, _priority in entries})
    return state


def _words(text: str) -> dict[str, list[str]]:
    """Lines of dcb's text: ``name key:value key:value``, or ``name value name value``."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, *rest = line.split()
        if rest and all(":" in word for word in rest):
            found[name] = rest
        else:
            words = [name, *rest]
            found.update({key: [value] for key, value in zip(words[::2], words[1::2])})
    return found


def _eight(words: dict[str, list[str]], name: str) -> list[str]:
    pairs = [word.split(":") for word in words.get(name, [])]
    if [key for key, _value in pairs] != [str(number) for number in range(8)]:
        raise ValueError(f"no line {name} with 0 to 7")
    return [value for _key, value in pairs]


def size_bytes(text: str) -> int:
    """``10Kb``, ``1Mb``: iproute2 prints sizes as multiples of 1024 unless told otherwise [lib/json_print.c]."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)b?", text)
    if match is None:
        raise ValueError(f"size {text!r}")
    return int(float(match.group(1)) * 1024 ** " KMG".index(match.group(2) or " "))


def dcb_text(kind: str, text: str) -> State:
    """Groups in the text of ``dcb -N KIND show``, for a dcb whose JSON cannot be read."""
    if kind == "dcbx":
        flags = text.split()
        if not flags or not set(flags) <= {"host", "lld-managed", "cee", "ieee", "static"}:
            raise ValueError("no DCBX flags")
        return {"dcbx": "host" if "host" in flags else "firmware"}
    words = _words(text)
    if kind == "pfc":
        enabled = _eight(words, "prio-pfc")
        if not set(enabled) <= {"on", "off"} or not words.get("delay"):
            raise ValueError("no PFC state")
        return {"pfc": [number for number, value in enumerate(enabled) if value == "on"],
                "cable_length": int(words["delay"][0])}
    if kind == "ets":
        return {"ets": _ets([int(value) for value in _eight(words, "prio-tc")], _eight(words, "tc-tsa"),
                            [int(value) for value in _eight(words, "tc-bw")])}
    if kind == "app":
        if text.strip() and "dscp-prio" not in words:
            raise ValueError("no line dscp-prio")
        return _app([(int(dscp), int(priority)) for dscp, priority in
                     (word.split(":") for word in words.get("dscp-prio", []))])
    return {"buffer": {"prio_buffer": [int(value) for value in _eight(words, "prio-buffer")],
                       "buffer_size": [size_bytes(value) for value in _eight(words, "buffer-size")]},
            "buffer_total": size_bytes(words.get("total-size", [""])[0])}


def _number_line(text: str, pattern: str) -> t.Any:
    return re.search(pattern, text, re.MULTILINE)


def _traffic_classes(text: str) -> dict[str, t.Any]:
    """``tc:`` lines with the priorities below each; classes that no priority uses are not printed."""
    prio_tc: list[int | None] = [None] * PRIORITIES
    tsa, bandwidth, current = ["vendor"] * TCS, [0] * TCS, -1
    for line in text.splitlines():
        match = _TC.fullmatch(line.rstrip())
        if match:
            current = int(match.group(1))
            tsa[current], bandwidth[current] = match.group(2), int(match.group(3) or 0)
        elif current >= 0 and line.startswith("\t priority:"):
            prio_tc[int(line.split(":")[1])] = current
    if None in prio_tc:
        raise ValueError(f"no traffic class of priority {prio_tc.index(None)}")
    return _ets([number for number in prio_tc if number is not None], tsa, bandwidth)


def mlnx_qos(text: str) -> State:
    """The groups that ``mlnx_qos -i IF`` shows."""
    mode = _number_line(text, r"^DCBX mode: (OS|Firmware) controlled")
    trust = _number_line(text, r"^Priority trust state: (\w+)")
    rows = {match.group(1): [int(word) for word in match.group(2).split()] for match in
            (_ROW.fullmatch(line) for line in text.splitlines()) if match}
    if mode is None or trust is None or len(rows.get("enabled", [])) != PRIORITIES:
        raise ValueError("not the text of mlnx_qos")
    state: State = {"dcbx": "host" if mode.group(1) == "OS" else "firmware", "trust": trust.group(1),
                    "pfc": [number for number, on in enumerate(rows["enabled"]) if on], "ets": _traffic_classes(text)}
    entries = [(int(dscp), int(match.group(1))) for match in _MAPPING.finditer(text)
               for dscp in match.group(2).split(",") if dscp]
    state.update({key: value for key, value in _app(entries).items() if key != "trust"})
    cable = _number_line(text, r"^Cable len: (\d+)")
    if cable:
        state["cable_length"] = int(cable.group(1))
    sizes = _number_line(text, r"^Receive buffer size \(bytes\): ((?:\d+,){8})")
    if sizes and "buffer" in rows:
        state["buffer"] = {"prio_buffer": rows["buffer"],
                           "buffer_size": [int(word) for word in sizes.group(1).split(",")[:-1]]}
    return state


def global_traffic_class(text: str) -> int:
    """``tc/N/traffic_class``: the global rule, 0 where there is none. Rules for single peers are not ours
    [OFED drivers/infiniband/hw/mlx5/main_ext.c]."""
    for line in text.splitlines():
        match = re.fullmatch(r"Global tclass=(\d+)", line.strip())
        if match:
            return int(match.group(1))
        if "tclass=" not in line and line.strip():
            raise ValueError(f"line {line.strip()!r}")
    return 0


def port_buffer_size(text: str) -> int:
    """``qos/buffer_size`` of the OFED driver: what the port has for all its buffers together."""
    match = re.search(r"^Port buffer size = (\d+)$", text, re.MULTILINE)
    if match is None or len(re.findall(r"^\d\t\d+$", text, re.MULTILINE)) != PRIORITIES:
        raise ValueError("not a table of eight buffers")
    return int(match.group(1))


def pause(text: str) -> str | None:
    """What of global pause is on in ``ethtool -a``: ``rx``, ``tx``, ``rx and tx``, or None."""
    found = dict(re.findall(r"^(RX|TX):\s+(on|off)$", text, re.MULTILINE))
    if set(found) != {"RX", "TX"}:
        raise ValueError("no RX and TX line")
    return " and ".join(name.lower() for name in ("RX", "TX") if found[name] == "on") or None
