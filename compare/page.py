"""The page docs/performance.md, from what was measured. No figure in it is written by hand."""

import re
from statistics import median

from measures import ratio

BARE, OURS = "bare hyper handler", "rehearse mock"


def write(found):
    machine, versions = found["machine"], found["versions"]
    parts = [
        "# Performance",
        "This page is written by `make compare`, which measures everything side by side on one machine. Figures of your "
        "machine differ; the ratios say more. Run it yourself: it takes about ten minutes, Node and Python.",
        f"{machine['date']}, {machine['processors']} × {machine['processor']}, {machine['system']}, load {machine['load']:.1f} "
        f"before. " + ", ".join(f"{name} {version.lstrip('v')}" for name, version in versions.items()) + ".",
        "## A mock under load",
        "Calls of a tool that returns its argument, over streamable HTTP with JSON responses, by `rehearse bench call`. The "
        "mock validates the arguments, fills a template and keeps its journal. The bare handler reads the request and "
        "answers with constants of the same size. Each figure is the median of ten slices, in which the servers took turns; "
        "the load generator shares the machine with them.",
        rates(found["http"]),
        f"At 32 connections the mock reaches {of(found['http']['32'], OURS, BARE)} of the bare handler's rate. "
        + "; ".join(f"{of(found['http']['32'], OURS, name)} × {name}" for name in others(found["http"]["32"])) + ".",
        crossed(found["wrk"], found["http"]["32"]),
        warned(found["http"]),
        f"With sessions of 2025-11-25 and event streams it reaches {of(found['sessions'], OURS, BARE)}.",
        "Over stdio, with 32 calls at once:",
        table(["server", "calls per second", "p50", "p99", "processor time of the server per call"], [
            [name, number(median(it["rates"])), ms(it["p50Ms"]), ms(it["p99Ms"]), f"{1e6 * it['cpu'] / it['count']:.1f} µs"]
            for name, it in found["stdio"]["servers"].items()]),
        "## Starting",
        "From the start of the process to the answer to `initialize` on stdio; `/bin/true` and `--version` only start and "
        "end.",
        times(found["cold"], "/bin/true"),
        "One command that starts a server on stdio, lists its tools and ends. The server is `rehearse mock basic`, if no "
        "other is named; *alone* is the same session with requests that are prepared before, until the process has ended.",
        times(found["commands"], "the mock alone"),
        "## Many servers",
        "`rehearse mcp list-tools` with so many mocks on stdio in its config, and `rehearse bench discovery` with requests "
        "that are prepared before.",
        table(["servers", "`mcp list-tools`", "prepared requests"], [
            [count, seconds(median(it["rehearse mcp list-tools"])),
             seconds(median(it["prepared requests"])) if "prepared requests" in it else "-"]
            for count, it in found["discovery"].items()]),
        "## Checks",
        "All checks of server-everything over streamable HTTP. `rehearse check` looks at more, and waits for what must not "
        "come; *made* are the checks that came to a verdict.",
        checks(found["checks"]),
        "## Scenarios",
        f"All shipped scenarios take {seconds(median(found['scenarios']['rehearse run']))}.",
        "## Memory",
        table(["calls", "memory of the mock"], [
            [number(int(count)), f"{memory / 1e6:.1f} MB"] for count, memory in found["memory"].items()]),
        soaked(found["soak"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def slower(earlier, now):
    """What has become slower from one page to another: only ratios, which are of one machine, and no small differences."""
    old, new = ratios(earlier), ratios(now)
    return [f"{name}: {new[name]:.2f}, before {old[name]:.2f}" for name in sorted(old.keys() & new.keys())
            if new[name] < 0.8 * old[name]]


def ratios(text):
    """The ratios of a page; more is better."""
    found = {f"calls per second, × {name.strip()}": float(ratio)
             for ratio, name in re.findall(r"([\d.]+) \([\d.]+ to [\d.]+\) × ([\w ()-]+)[;.]", text)}
    for name, pattern in {
        "calls per second, of the bare handler": r"mock reaches ([\d.]+) \([^)]*\) of the bare",
        "sessions with event streams, of the bare handler": r"event streams it reaches ([\d.]+) ",
    }.items():
        if match := re.search(pattern, text):
            found[name] = float(match[1])
    stdio = {name: float(rate.replace(",", "")) for name, rate in re.findall(r"^\| ([\w -]+) \| ([\d,]+) \| [\d.]+ ms \|", text, re.M)}
    if OURS in stdio:
        found |= {f"calls per second over stdio, × {name}": stdio[OURS] / rate for name, rate in stdio.items() if name != OURS}
    starts = re.findall(r"^\| `(rehearse [^`]+)` \| [^|]+ \| ([\d.]+) \|$", text, re.M)
    return found | {f"starting, of what it is compared with: {name}": 1 / float(ratio) for name, ratio in starts}


def crossed(wrk, measured):
    """The same rates, found by another load generator."""
    if not wrk:
        return ""
    rates = " and ".join(f"{number(median(measured['servers'][name]['rates']))}" for name in (BARE, OURS))
    middle, least, most = ratio(wrk[1], wrk[0])
    return (f"`wrk`, written in C, with one thread and 32 connections finds {number(median(wrk[0]))} calls per second of the bare "
            f"handler and {number(median(wrk[1]))} of the mock, {middle:.2f} ({least:.2f} to {most:.2f}); it does not read the "
            f"answers. `rehearse bench` finds {rates} and checks every answer.")


def checks(found):
    rows = [[name, number(found["made"][name]), seconds(median(times)), ms(1e3 * median(times) / found["made"][name])]
            for name, times in found["times"].items()]
    return table(["", "made", "median", "for each"], rows)


def soaked(soak):
    """What `make soak` found when it ran last."""
    if not soak:
        return ""
    return (f"In {soak['minutes']:g} minutes of `make soak`, clients came and went over all transports, and a few calls in a "
            f"hundred were answered with faults: {number(soak['answers'])} answers, {number(soak['errors'])} errors, from "
            f"{soak['memory'][0] / 1e6:.1f} MB to {soak['memory'][-1] / 1e6:.1f} MB. No process was left.")


def table(heads, rows):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(heads), line(["---"] * len(heads)), *map(line, rows)])


def rates(http):
    names = next(iter(http.values()))["servers"]
    rows = [[name, *(number(median(it["servers"][name]["rates"])) for it in http.values())] for name in names]
    return table(["calls per second at", *(f"{count} connections" if count != "1" else "1 connection" for count in http)], rows)


def others(measured):
    return [name for name in measured["servers"] if name not in (OURS, BARE)]


def of(measured, name, base):
    middle, least, most = ratio(measured["servers"][name]["rates"], measured["servers"][base]["rates"])
    return f"{middle:.2f} ({least:.2f} to {most:.2f})"


def warned(http):
    warnings = {count: it["warnings"] for count, it in http.items() if it["warnings"]}
    if not warnings:
        return ""
    lines = [f"- {count} connections: {warning}" for count, warnings in warnings.items() for warning in warnings]
    return "The load generator said of itself:\n\n" + "\n".join(lines)


def times(found, base):
    rows = [[f"`{name}`" if name.startswith(("/", "rehearse")) else name, seconds(median(it)),
             f"{median(it) / median(found[base]):.1f}"] for name, it in found.items()]
    return table(["", "median", f"/ `{base}`"], rows)


def seconds(value):
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def ms(value):
    return f"{value:.2f} ms"


def number(value):
    return f"{value:,.0f}"
