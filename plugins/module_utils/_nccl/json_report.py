# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The JSON report of nccl-tests (-J, from 2.17.3; schema versions 1 to 3): facts nccl-gate 1.4."""
from __future__ import annotations

import typing as t

from .header import MAX_DEVICES, MAX_RANKS_SEEN, HeaderReader, collective_of
from .model import Cell, Device, Result, Row
from .rows import RowSummary

if t.TYPE_CHECKING:
    from .errors import ErrorReader
    from .json_scan import Path, Scalar

MAX_PROCESSES = 4096
_MAX_KEYS = 64
# Before 2.17.9 both words of this key were misspelt.
_AVERAGE_KEYS = ("average_bus_bandwidth", "average_bus_bandwidith")
_BANDWIDTH_KEYS = ("bandwidth", "bandwith")
_CONFIG = {
    "nthreads": "threads", "ngpus": "gpus_per_thread", "minimum_bytes": "min_bytes", "maximum_bytes": "max_bytes",
    "warmup_iters": "warmup_iters", "iterations": "iters", "validation": "validation", "graph": "graph",
}
_PLACES = ("out_of_place", "in_place")
_PER_ITERATION = {"min_us": "i_min", "max_us": "i_max", "p99_us": "i_p99", "cv_pct": "i_cv%", "stdev_us": "i_stdev"}


class JsonReport:
    """Receives the scanner's events and fills the result that it shares with the text reader."""

    def __init__(self, result: Result, header: HeaderReader, rows: RowSummary, errors: ErrorReader) -> None:
        self._result, self._header, self._rows, self._errors = result, header, rows, errors
        self._row: dict[tuple[str | int, ...], Scalar] = {}
        self._processes: dict[str, list[tuple[float, int]]] = {}
        self._device: dict[str, Scalar] = {}
        self._args: list[str] = []
        self._dated = False
        self.ended = False
        self.broken = 0
        result.source = "json"
        result.layout = "json"
        header.column_headers += 1

    # -- events -------------------------------------------------------------------------------------

    def scalar(self, path: Path, value: Scalar) -> None:
        top = path[0]
        if top == "results" and len(path) >= 3:
            self._result_value(path, value)
        elif top == "config":
            self._config(path, value)
        elif top == "args":
            if len(self._args) < 256 and isinstance(value, str):
                self._args.append(value)
        elif top == "env":
            self._environment(value)
        else:
            self._top(path, value)

    def numbers(self, path: Path, values: list[float]) -> None:
        if path[0] == "results" and len(path) >= 5 and path[3] == "per_process_max_times_us":
            self._process(tuple(path[2:]), sum(values), len(values))

    def closed(self, path: Path) -> None:
        if len(path) == 2 and path[0] == "results":
            self._finish_row()
        elif len(path) == 3 and path[:2] == ["config", "devices"]:
            self._finish_device()
        elif path == ["args"]:
            self._finish_args()
        elif not path:
            # A crash closes all brackets too (from 2.18.5), but only after a date.
            self.ended = self._dated

    # -- top level ----------------------------------------------------------------------------------

    def _top(self, path: Path, value: Scalar) -> None:
        top, result = path[0], self._result
        if top == "version":
            result.json_version = _integer(value)
        elif top == "nccl_version":
            result.nccl_version = _nccl_version(_integer(value))
        elif top == "end_time":
            self._dated = True
        elif top == "errors" and isinstance(value, str) and value.strip():
            self._errors.prepare(value)
            if not self._errors.plain(value) and len(result.notes) < _MAX_KEYS:
                result.notes.append(f"last NCCL error: {value[:200]}")
        elif len(path) == 2:
            self._footer(top, path[1], value)

    def _footer(self, top: str | int, key: str | int, value: Scalar) -> None:
        result = self._result
        if top == "out_of_bounds" and key == "count":
            count = _integer(value)
            if count is not None and len(result.out_of_bounds) < 16:
                result.out_of_bounds.append(count)
                result.out_of_bounds_failed |= count > 0
        elif top == "out_of_bounds" and key == "okay":
            # A string; older readers expect a boolean, so both are understood.
            result.out_of_bounds_failed |= value not in ("true", "unchecked")
        elif top in _AVERAGE_KEYS and key in _BANDWIDTH_KEYS:
            number = _number(value)
            if number is not None and len(result.average_printed) < 16:
                result.average_printed.append(number)
        elif top in _AVERAGE_KEYS and key == "okay" and value in ("true", "false") and not result.average_words:
            result.average_words.append("OK" if value == "true" else "FAILED")

    def _environment(self, value: Scalar) -> None:
        """The list holds the whole environment, secrets too: only NCCL's own variables are kept."""
        environment = self._result.transport.environment
        if isinstance(value, str) and value.startswith("NCCL_") and len(environment) < 256:
            name, _equals, setting = value.partition("=")
            environment[name[:80]] = setting[:200]

    def _finish_args(self) -> None:
        if self._args:
            name = collective_of(self._args[0].rpartition("/")[2])
            self._result.request.command = " ".join(self._args)[:1024]
            self._result.request.collective = name
            self._result.ran.collective, self._result.ran.collective_source = name, "named"

    # -- config -------------------------------------------------------------------------------------

    def _config(self, path: Path, value: Scalar) -> None:
        if len(path) == 2:
            request, key = self._result.request, path[1]
            if key in ("step_factor", "step_bytes"):
                request.step, request.step_kind = _integer(value), str(key).partition("_")[2]
            elif key in _CONFIG:
                setattr(request, _CONFIG[str(key)], _integer(value))
        elif len(path) == 4 and path[1] == "devices" and len(self._device) < _MAX_KEYS:
            self._device[str(path[3])] = value

    def _finish_device(self) -> None:
        """One entry for each process, whatever its number of GPUs: the ranks between are filled in."""
        entry, self._device = self._device, {}
        rank, host = _integer(entry.get("rank")), str(entry.get("hostname", ""))
        if rank is None or rank < 0:
            return
        header, request, devices = self._header, self._result.request, self._result.ran.devices
        each = min(max((request.threads or 1) * (request.gpus_per_thread or 1), 1), 4096)
        group, number = _integer(entry.get("group")) or 0, _integer(entry.get("device")) or 0
        header.rank_zeros += rank == 0
        header.groups.add(group)
        for offset in range(each):
            if len(header.ranks) >= MAX_RANKS_SEEN:
                break
            header.ranks.add(rank + offset)
            header.hosts[host] = header.hosts.get(host, 0) + 1
        if len(devices) < MAX_DEVICES:
            devices.append(Device(rank, group, _integer(entry.get("pid")), host, number,
                                  str(entry.get("device_hex", "")), str(entry.get("device_info", ""))))

    # -- rows ---------------------------------------------------------------------------------------

    def _result_value(self, path: Path, value: Scalar) -> None:
        tail = tuple(path[2:])
        if len(tail) >= 3 and tail[1] == "per_process_max_times_us":
            self._process(tail, value)
        elif len(tail) <= 2 and len(self._row) < _MAX_KEYS:
            self._row[tail] = value

    def _process(self, tail: tuple[str | int, ...], value: Scalar, values: int = 1) -> None:
        number = _number(value)
        if len(tail) != 4 or number is None or not isinstance(tail[2], int) or tail[2] >= MAX_PROCESSES:
            return
        if tail[0] not in ("out_of_place_per_iter", "in_place_per_iter"):
            return
        sums = self._processes.setdefault(str(tail[0]), [])
        while len(sums) <= tail[2]:
            sums.append((0.0, 0))
        total, count = sums[tail[2]]
        sums[tail[2]] = (total + number, count + values)

    def _finish_row(self) -> None:
        values, self._row = self._row, {}
        processes, self._processes = self._processes, {}
        size, count = _integer(values.get(("size",))), _integer(values.get(("count",)))
        cells = [self._cell(values, place, processes.get(f"{place}_per_iter", [])) for place in _PLACES]
        if size is None or count is None or size < 0 or not any(cells):
            self.broken += 1
            return
        root = _integer(values.get(("root",)))
        self._rows.add(Row(size, count, str(values.get(("type",), "")), str(values.get(("redop",), "")), root,
                           cells[0], cells[1]))

    @staticmethod
    def _cell(values: dict[tuple[str | int, ...], Scalar], place: str, sums: list[tuple[float, int]]) -> Cell | None:
        time = _number(values.get((place, "time"), values.get((place, "cpu_time"))))
        algbw, busbw = _number(values.get((place, "alg_bw"))), _number(values.get((place, "bus_bw")))
        if time is None or algbw is None or busbw is None:
            return None
        extra = {}
        for key, name in _PER_ITERATION.items():
            number = _number(values.get((f"{place}_per_iter", key)))
            if number is not None:
                extra[name] = number
        return Cell(time, algbw, busbw, _number(values.get((place, "nwrong"))), extra,
                    [total / count for total, count in sums if count])


def _number(value: Scalar) -> float | None:
    """Numbers come bare or, as "nan", in a string."""
    if isinstance(value, str):
        try:
            return float(value[:64])
        except ValueError:
            return None
    return value


def _integer(value: Scalar) -> int | None:
    number = _number(value)
    # inf and nan fail this comparison; the bound is that of size_t.
    return int(number) if number is not None and -(2.0 ** 64) < number < 2.0 ** 64 else None


def _nccl_version(code: int | None) -> str:
    """22903 -> 2.29.3; before 2.9 the code was 1000 x major + 100 x minor + patch (nccl.h NCCL_VERSION)."""
    if not code or code < 0:
        return ""
    if code < 10000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
