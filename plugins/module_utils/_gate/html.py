# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The report as one HTML page: verdict first, no external assets, no script, every value escaped."""
from __future__ import annotations

import html
import json
import typing as t

Document = t.Mapping[str, t.Any]

_STYLE = """
:root{color-scheme:light}*{box-sizing:border-box}
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:64rem;padding:1rem;color:#1c2733;background:#fff;
overflow-wrap:anywhere}
h1{font-size:1.15rem;margin:.3rem 0}h2{font-size:1.05rem;margin:1.6rem 0 .5rem}
.verdict{border-left:.6rem solid;padding:.6rem 1rem;border-radius:.3rem}.verdict b{font-size:1.7rem;display:block}
.c0{border-color:#1a7f37;background:#e6f4ea}.c2{border-color:#b3261e;background:#fce8e6}
.c3{border-color:#8a6100;background:#fef4d8}
.sim{background:#5b2a86;color:#fff;font-weight:700;padding:.6rem 1rem;border-radius:.3rem;margin-bottom:.6rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.3rem .55rem;text-align:left;border-bottom:1px solid #d5dce3;vertical-align:top;overflow-wrap:normal}
.heat td,.heat thead th{text-align:center;white-space:nowrap}
.heat tbody th{position:sticky;left:0;background:#fff;min-width:6rem;max-width:14rem;overflow-wrap:break-word}
.heat small{display:block}
@media(max-width:30rem){th,td{padding:.3rem .2rem}table{font-size:.78rem}
.heat tbody th{min-width:4.5rem;max-width:7rem}}
.good{background:#cdebd5}.slow{background:#ffe3a3}.bad{background:#f4b6ae;font-weight:700}.none{color:#5c6873}
.card{border:1px solid #d5dce3;border-radius:.3rem;padding:.6rem .8rem;margin:.5rem 0}.card p{margin:.3rem 0}
.tag{font-size:.8rem;border:1px solid #7a8793;border-radius:.8rem;padding:0 .5rem;white-space:nowrap}
small,.src{color:#5c6873;font-size:.85rem}pre{white-space:pre-wrap;background:#f3f5f7;padding:.6rem;font-size:.8rem}
ul{padding-left:1.2rem;margin:.3rem 0}
""".strip()
# Nothing may be loaded or run, whatever a host name says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def _e(value: t.Any) -> str:
    text = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in str(value))
    return html.escape(text, quote=True)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def render(document: Document) -> str:
    verdict = document["verdict"]
    simulated = '<div class="sim">SIMULATED: not a measurement of hardware</div>' if document["simulated"] else ""
    sections = (_bandwidth, _causes, _convicted, _heat, _limits, _rounds, _not_judged, _evidence)
    body = "\n".join(filter(None, (section(document) for section in sections)))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_e(verdict['label'])}: {_e(document['subject'])}</title>
<style>{_STYLE}</style></head><body>
{simulated}<h1>Gate report: {_e(document['subject'])}</h1>
<div class="verdict c{verdict['exit_code']}"><b>{_e(verdict['label'])}</b>{_e(verdict['reason'])}</div>
{body}
</body></html>
"""


def _section(title: str, content: str) -> str:
    return f"<section><h2>{_e(title)}</h2>\n{content}</section>" if content else ""


def _list(texts: t.Iterable[str]) -> str:
    items = "".join(f"<li>{_e(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _table(titles: t.Sequence[str], rows: t.Iterable[t.Sequence[t.Any]]) -> str:
    head = "".join(f"<th>{_e(title)}</th>" for title in titles)
    lines = "".join("<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{lines}</tbody></table></div>'


def _bandwidth(document: Document) -> str:
    found = document["bandwidth"]
    if not found or found["peak_busbw_gbps"] is None:
        return ""
    share = f", {found['ratio']:.1%} of the limit" if found["ratio"] is not None else ", not judged"
    return _section("Bandwidth", f"<p>Peak bus bandwidth {_e(found['peak_busbw_gbps'])} GB/s{_e(share)}.</p>")


def _causes(document: Document) -> str:
    cards = []
    for one in document["causes"]:
        places = ", ".join(dict.fromkeys(" ".join(filter(None, (place["node"], place["device"])))
                                         for place in one["places"]))
        where = f"<p>Where: {_e(places)}</p>" if places else ""
        cards.append(f'<div class="card"><p><span class="tag">{_e(one["strength"])}</span> '
                     f'<b>{_e(one["cause"])}</b></p><p>To do: {_e(one["action"])}</p>{where}'
                     f'{_list(one["evidence"])}<p class="src">Source: {_e(one["source"])}</p></div>')
    return _section("Likely cause and what to do", "\n".join(cards))


def _convicted(document: Document) -> str:
    search = document["search"]
    if not search:
        return _section("What spoke against a pass", _list(
            f"{one['state']}: {one['text']}" for one in document["reasons"]))
    drain = ", ".join(search["bad_nodes"]) or "nobody"
    suspects = [f"suspect, not proven: {one['node']}: {one['reason']}" for one in search["suspects"]]
    texts = [one["text"] for one in search["convicted"]]
    verified = "yes" if search["verified"] else "no"
    return _section("Found", f"{_list([*texts, *suspects])}<p>To drain: <b>{_e(drain)}</b>. "
                    f"The rest was verified: {verified}.</p>")


def _heat(document: Document) -> str:
    heat = document["heat"]
    if not heat:
        return ""
    head = "".join(f"<th>{_e(title)}</th>" for title in heat["columns"])
    rows = "".join(f"<tr><th>{_e(row['node'])}{' <small>' + _e(row['mark']) + '</small>' if row['mark'] else ''}</th>"
                   + "".join(_cell(value) for value in row["values"]) + "</tr>\n" for row in heat["rows"])
    return _section("Node by rail", '<p class="src">Best share of the limit with any partner: a low cell was low with '
                    f'all of them. – was not measured.</p><div class="scroll"><table class="heat"><thead><tr><th></th>'
                    f"{head}</tr></thead><tbody>\n{rows}</tbody></table></div>")


def _cell(value: float | None) -> str:
    # The bands of the gate: 0.90 and 0.80 (facts nccl-gate 3.3).
    name = "none" if value is None else "good" if value >= 0.9 else "slow" if value >= 0.8 else "bad"
    return f'<td class="{name}">{_share(value)}</td>'


def _limits(document: Document) -> str:
    cards = []
    for one in document["limits"]:
        limit = one["limit"]
        if limit is None:
            cards.append(f'<div class="card"><p><b>{_e(one["what"])}</b>: no limit. {_e(one["reason"])}</p></div>')
            continue
        inputs = json.dumps(limit["inputs"], indent=1, sort_keys=True, ensure_ascii=False)
        cards.append(f'<div class="card"><p><b>{_e(one["what"])}: {limit["busbw_gbps"]:g} GB/s</b>, of which '
                     f'{limit["pass_fraction"]:.0%} are needed.</p>'
                     f'<p>Rule: {_e(limit["rule"])}; {_e(one["reason"])}</p>'
                     f"<details><summary>Inputs</summary><pre>{_e(inputs)}</pre></details></div>")
    return _section("Limit and how it came about", "\n".join(cards))


def _rounds(document: Document) -> str:
    if not document["search"]:
        return ""
    rows = [(one["round"], one["stage"], one["text"], one["runs"], _share(one["median"]), _share(one["lowest"]),
             ", ".join(one["lowest_nodes"])) for one in document["search"]["history"]]
    return _section("Rounds of the search", _table(
        ("Round", "Stage", "What", "Runs", "Median", "Lowest", "Lowest run"), rows))


def _not_judged(document: Document) -> str:
    return _section("What this verdict says nothing about", _list(document["not_judged"]))


def _evidence(document: Document) -> str:
    result = document["evidence"].get("result")
    if not result:
        return ""
    rows = [(row["size_bytes"], *(row[place]["busbw_gbps"] if row[place] else "–"
                                  for place in ("out_of_place", "in_place"))) for row in result["rows"]]
    hosts = ", ".join(result["hosts"]) or "unknown"
    text = f"<p>{_e(result['collective'] or 'unknown collective')}, ranks {_e(result['ranks'])}, hosts {_e(hosts)}.</p>"
    return _section("Evidence", text + _table(("Bytes", "Out of place, GB/s", "In place, GB/s"), rows))
