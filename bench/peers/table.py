"""Ratios of lockstep to its peers, from the samples of one or more runs."""

import statistics

import limits
from works import CELLS, MODELS, smaller_is_better

OURS = "lockstep"


def collect(runs):
    """model -> cell -> peer -> {(run, round): value}"""
    found = {}
    for number, run in enumerate(runs):
        for s in run["samples"]:
            cell = found.setdefault(s["model"], {}).setdefault(s["cell"], {})
            cell.setdefault(s["peer"], {})[number, s["round"]] = s["value"]
    return found


def ratios(ours, theirs):
    """One ratio a round in which both were measured."""
    return [ours[key] / theirs[key] for key in ours.keys() & theirs.keys() if theirs[key]]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_spread(values):
    if not values:
        return ""
    text = f"{statistics.median(values):.2f}"
    return text if len(values) == 1 else f"{text} ({min(values):.2f}–{max(values):.2f})"


def best_peer(cell, medians):
    choose = min if smaller_is_better(cell) else max
    return choose(medians, key=medians.get) if medians else None


def model_rows(cells, peers):
    for cell in CELLS:
        values = cells.get(cell, {})
        if not values:
            continue
        medians = {peer: statistics.median(v.values()) for peer, v in values.items()}
        ours = values.get(OURS, {})
        row = [cell + (" ↓" if smaller_is_better(cell) else ""),
               number(medians[OURS]) if ours else ""]
        for peer in peers:
            row.append(f"{number(medians[peer])}: {with_spread(ratios(ours, values[peer]))}"
                       if peer in values else "")
        best = best_peer(cell, {p: m for p, m in medians.items() if p != OURS})
        row.append(f"{with_spread(ratios(ours, values[best]))} × {best}" if best else "")
        yield row


def bandwidth_line(model, runs):
    """What share of the bandwidth one row's decoding draws, by the round's own limits."""
    shares, rates = [], []
    for run in runs:
        for s in run["samples"]:
            if (s["model"], s["peer"], s["cell"]) != (model, OURS, "decode 1 @ 128"):
                continue
            limit = run["limits"][s["round"]].get(limits.bandwidth_name(run["threads"]))
            rates.append(s["value"] * run["bytes_a_token"][model] * 1e-9)
            if limit:
                shares.append(rates[-1] / limit)
    if not rates:
        return ""
    return (f"{OURS} decoding one row at 128 reads {with_spread(rates)} GB/s of weights: "
            f"{with_spread(shares) or '?'} of the bandwidth measured in its round.")


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render(runs):
    parts = []
    found = collect(runs)
    for model in (m for m in MODELS if m in found):
        cells = found[model]
        peers = sorted({p for values in cells.values() for p in values} - {OURS})
        header = [model, OURS, *(f"{p}: ratio" for p in peers), "to the best peer"]
        parts.append(markdown(header, list(model_rows(cells, peers))))
        if line := bandwidth_line(model, runs):
            parts.append(line)
    parts.append(limits_table(runs))
    skipped = sorted({f"- {s['peer']}, {s['model']}, {s['work']}: {s['reason']}"
                      for run in runs for s in run["skipped"]})
    if skipped:
        parts.append("Not measured:\n" + "\n".join(skipped))
    parts.append("Each cell: the peer's median, then lockstep / peer as the median over rounds "
                 "(lowest–highest). ↓: smaller is better, so a ratio below 1 is lockstep's. "
                 "OpenVINO runs in process, without HTTP.")
    return "\n\n".join(parts)


def limits_table(runs):
    found = {}
    for run in runs:
        for measured in run["limits"]:
            for name, value in measured.items():
                found.setdefault(name, []).append(value)
    threads = sorted({run["threads"] for run in runs})
    rows = [[name, number(statistics.median(v)), f"{number(min(v))}–{number(max(v))}"]
            for name, v in found.items()]
    return markdown([f"limits of this machine ({runs[0]['machine']}; "
                     f"{', '.join(map(str, threads))} threads used)", "median", "range"], rows)
