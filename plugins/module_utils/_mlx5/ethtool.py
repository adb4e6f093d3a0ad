# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what ``ethtool`` says of rings, channels and pause, as JSON or as text. Never touches the machine.

JSON came option by option: pause in 5.10, rings after 6.1, channels not in 6.14 (tried; an option without it ends with
"bad command line argument"). So every option is asked for JSON first, and then for text.
"""
from __future__ import annotations

import json
import typing as t

Value = t.Union[int, bool]
# Letter of the option -> our names, with the names in JSON and the labels in text, of current values.
FIELDS: dict[str, dict[str, tuple[str, str]]] = {
    "g": {"rx_ring_entries": ("rx", "RX"), "tx_ring_entries": ("tx", "TX")},
    "l": {"channels": ("combined", "Combined")},
    "a": {"pause_rx": ("rx", "RX"), "pause_tx": ("tx", "TX")},
}
_TITLES = {"g": "Ring parameters for", "l": "Channel parameters for", "a": "Pause parameters for"}
_SWITCH = {"on": True, "off": False}


def no_json(text: str) -> bool:
    """Whether this is how an ethtool says that the option has no JSON."""
    return "bad command line argument" in text


def _value(text: str) -> Value | None:
    """A number, a switch, or None for n/a."""
    if text == "n/a":
        return None
    return _SWITCH[text] if text in _SWITCH else int(text)


def _sections(letter: str, text: str) -> tuple[dict[str, str], dict[str, str]]:
    """(limits, current values) by label; pause has no limits."""
    limits: dict[str, str] = {}
    current: dict[str, str] = {}
    here = current
    lines = text.splitlines()
    if not lines or not lines[0].startswith(_TITLES[letter]):
        raise ValueError(f"no line {_TITLES[letter]!r}")
    for line in lines[1:]:
        label, _colon, value = line.partition(":")
        if label == "Pre-set maximums":
            here = limits
        elif label == "Current hardware settings":
            here = current
        elif value.strip():
            here.setdefault(label.strip(), value.strip())
    return limits, current


def from_text(letter: str, text: str) -> tuple[dict[str, Value], dict[str, int]]:
    """(values, maximums) by our names; ValueError for text that is not this option's output."""
    limits, current = _sections(letter, text)
    values, most = {}, {}
    for name, (_json_name, label) in FIELDS[letter].items():
        if label not in current:
            raise ValueError(f"no {label}")
        value, limit = _value(current[label]), _value(limits.get(label, "n/a"))
        if value is not None:
            values[name] = value
        if limit is not None:
            most[name] = int(limit)
    return values, most


def from_json(letter: str, text: str) -> tuple[dict[str, Value], dict[str, int]]:
    data = json.loads(text)
    if not isinstance(data, list) or len(data) != 1 or not isinstance(data[0], dict) or "ifname" not in data[0]:
        raise ValueError("no list of one device")
    entry, values, most = data[0], {}, {}
    for name, (json_name, _label) in FIELDS[letter].items():
        value, limit = entry.get(json_name), entry.get(f"{json_name}-max")
        # A value that the driver has not is left out.
        if isinstance(value, int) and isinstance(value, bool) == (letter == "a"):
            values[name] = value
        elif value is not None:
            raise ValueError(f"{json_name}: {value!r}")
        if isinstance(limit, int):
            most[name] = limit
    return values, most
