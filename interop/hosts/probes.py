"""What is asked of a host. Each probe is a function of the host, and returns findings: a name, and what was found.

A limit is an object: `works` is the most that came through, `fails` the least that did not, and `then` what happens there.
Without `fails`, everything came through that was tried.
"""

import json
import re
from pathlib import Path

from guarded_server import GuardedServer
from real_host import PATIENCE, SILENT, NotRun

SERVERS = Path(__file__).resolve().parent / "servers"
READ_ONLY = {"readOnlyHint": True}
VERSIONS = ["2024-11-05", "2026-07-28"]
# Seconds: between two of them is the time at which a host gives up.
TIMES = [1, 3, 5, 10, 20, 30, 45, 65]
CALL_TIMES = [10, 25, 35, 55, 65, 130, 290, 310]
KB = 1000
# The tools of `calls.yaml` that answer with a result of their name, and the first version that has it.
RESULTS = dict.fromkeys(["text", "image", "resource", "parts", "error", "failure"], "") | {
    "audio": "2025-03-26", "link": "2025-06-18", "structured": "2025-06-18", "data": "2025-06-18"}
# Where a host may take no tool of a server that has one with such a schema.
ALONE = ["booleanSchema", "propertyNull", "rootString", "rootWithoutType"]


def shown(host, server):
    """The tools that the model sees. That it sees none is true if it is so twice."""
    return host.meet(server, SILENT).shown() or host.meet(server, SILENT).shown()


def calls_through(host, server, **options):
    """Whether the call of `read` comes to the server. That it does not is true if it is so twice."""
    return host.meet(server, **options).arrived("read") or host.meet(server, **options).arrived("read")


def tool(name, **more):
    return {"name": name, "annotations": READ_ONLY, "reply": "ok", **more}


def limit(outcomes):
    """What was found of sizes, from each to what happened there: `None` if it came through."""
    works = [size for size, outcome in sorted(outcomes.items()) if outcome is None]
    fails = [size for size, outcome in sorted(outcomes.items()) if outcome is not None and size > max(works, default=0)]
    found = {"works": max(works, default=0)}
    return found | {"fails": fails[0], "then": outcomes[fails[0]]} if fails else found


def cut_at(size, then):
    return {"works": size, "fails": size + 1, "then": then}


def bisect(sizes, outcome):
    """The limit among rising sizes, of which each fails if a smaller one does."""
    outcomes = {}

    def fails(size):
        outcomes[size] = outcome(size)
        return outcomes[size] is not None

    low, high = 0, len(sizes)
    if not fails(sizes[-1]):
        return limit(outcomes)
    high -= 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(sizes[middle]) else (middle + 1, high)
    return limit(outcomes)


def numbered(length):
    """A text of which each part is another one."""
    lines = (f"{number:07} the quick brown fox jumps over the lazy dog" for number in range(length // 48 + 1))
    return "\n".join(lines)[: length - 1] + "."


def change(tool, what):
    """What became of a part of a tool, if it came otherwise than it was listed."""
    return next((text for text in tool.get("changes", []) if what in text), None)


def kept(text):
    """How many characters are left of a text that was cut."""
    words = text.split("cut: ")[-1].split()
    return int(words[0]) if "cut: " in text else 0


# --- names and lists -------------------------------------------------------------------------------------------------


def names(host):
    lengths = {f"n{length}_".ljust(length, "x"): length for length in range(32, 131)}
    twins = ["twin.name", "twin_name"]
    seen = shown(host, {"tools": [tool(name) for name in [*lengths, *twins]]})
    whole = [name for name in lengths if seen.get(name, {}).get("shown", "").endswith(name)]
    # What stands before the names.
    before = len(seen[whole[0]]["shown"]) - len(whole[0]) if whole else 0
    outcome = lambda name: "the tool is left out" if name not in seen else "the name is cut"
    found = {length + before: None if name in whole else outcome(name) for name, length in lengths.items()}
    return {
        "name.length": limit(found),
        "name.equal": len({seen[name]["shown"] for name in twins if name in seen}) == len(twins),
    }


def name_characters(host):
    characters = [*". - _ / : @ ü 日".split(), " "]
    names = {character: f"odd{number}{character}x" for number, character in enumerate(characters)}
    seen = host.meet({"tools": [tool(name) for name in names.values()]})
    of = {character: seen.tool(name) for character, name in names.items()}
    found = {
        "kept": lambda it: it.get("shown", "").endswith(it.get("name", "-")),
        "replaced": lambda it: "shown" in it and not it["shown"].endswith(it["name"]),
        "left out": lambda it: "shown" not in it,
        "not called": lambda it: "shown" in it and not it.get("call", {}).get("arrived"),
    }
    found = {what: "".join(it for it in characters if holds(of[it])) for what, holds in found.items()}
    return {"name.characters": {what: them for what, them in found.items() if them}}


def tool_count(host):
    def count(tools, **more):
        return len(shown(host, {"tools": [{"repeat": tools, **tool("tool_{{ n }}")}], **more}))

    if count(600, pageSize=250) == 600:
        return {"tools.count": {"works": 600}, "tools.pages": True}

    def outcome(tools):
        got = count(tools)
        return None if got == tools else f"{got} are shown"

    return {"tools.count": bisect([10, 60, 130, 260, 600], outcome), "tools.pages": count(25, pageSize=10) == 25}


def list_change(host):
    change = {"name": "change", "annotations": READ_ONLY, "steps": [{"enable": {"tool": "late"}}, {"reply": "changed"}]}
    server = {"tools": [change, tool("pause", delay="1500ms"), tool("late", enabled=False)]}
    rules = [{"when": {"lacks": ["change", "pause"]}, "reply": "ok"}]
    for number, name in enumerate(["change", "pause", "late"]):
        rules.append({"when": {"calls": number}, "reply": {"calls": [{"tool": name}]}})
    seen = host.meet(server, {"rules": [*rules, {"reply": "done"}]})
    called = [request["params"]["name"] for request in seen.requests("tools/call")]
    if called[:2] != ["change", "pause"]:
        raise NotRun(f"only these calls came to the server: {called}")
    return {"tools.listChanged": "late" in called}


def descriptions(host):
    sizes = [size * KB for size in (1, 2, 4, 8, 16, 32, 64, 100)]
    seen = shown(host, {"tools": [tool(f"d{size}", description=numbered(size)) for size in sizes]})
    changes = {size: change(seen.get(f"d{size}", {}), "description") for size in sizes}
    cut = [kept(text) for text in changes.values() if text and "cut: " in text]
    outcomes = {size: text and "it is cut" if f"d{size}" in seen else "the tool is left out" for size, text in changes.items()}
    return {"tools.description": cut_at(min(cut), "it is cut") if cut else limit(outcomes)}


def instructions(host):
    """The model repeats what it gets, as the argument of a tool."""
    texts = {"system": "{{ system | default('') }}", "prompt": "{{ prompt | default('') }}"}
    model = {"rules": [
        {"when": {"lacks": ["echo"]}, "reply": "ok"},
        {"when": {"calls": 0}, "reply": {"calls": [{"tool": "echo", "args": texts}]}},
        {"reply": "done"},
    ]}
    outcomes = {}
    for size in (100 * KB, 1 * KB):
        text = numbered(size)
        seen = host.meet({"instructions": text, "tools": [tool("echo")]}, model)
        got = [request["params"].get("arguments") or {} for request in seen.requests("tools/call")]
        if not got:
            raise NotRun("its call did not come to the server")
        whole = max((prefix(text, part) for arguments in got for part in arguments.values()), default=0)
        outcomes[size] = None if whole == size else "they are cut" if whole > 99 else "they are not shown"
        if whole > 99:
            return {"instructions": {"works": whole} if whole == size else cut_at(whole, outcomes[size])}
    return {"instructions": limit(outcomes)}


def prefix(text, of):
    """How many characters of the beginning of a text another one has."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in of else (low, middle - 1)
    return low


# --- schemas ---------------------------------------------------------------------------------------------------------


def with_schema(name, schema):
    root = schema["root"] if "root" in schema else {"type": "object", "properties": {"v": schema}}
    return tool(name, inputSchema=root, unchecked=True)


def of_schema(seen, name):
    if name not in seen:
        return "left out"
    lost = change(seen[name], "input schema")
    return lost.removeprefix("its input schema: ") if lost else "kept"


def schemas(host):
    """Each construct alone, if they cannot be together."""
    found = {}
    for group, constructs in json.loads((SERVERS / "schemas.json").read_text()).items():
        tools = {name: with_schema(name, schema) for name, schema in constructs.items()}
        alone = [{name: tools.pop(name)} for name in ALONE if name in tools]
        for part in (tools, *alone):
            found |= {f"schema.{group}.{name}": what for name, what in met_schemas(host, part).items()}
    return found


def met_schemas(host, tools):
    """What became of each; where a part of them blocks the server, its halves are tried."""
    seen = shown(host, {"tools": [tool("plain"), *tools.values()]})
    if seen:
        return {name: of_schema(seen, name) for name in tools}
    if len(tools) == 1:
        return dict.fromkeys(tools, "blocks the server")
    names = list(tools)
    half = len(names) // 2
    halves = [{name: tools[name] for name in part} for part in (names[:half], names[half:])]
    return met_schemas(host, halves[0]) | met_schemas(host, halves[1])


# --- results ---------------------------------------------------------------------------------------------------------


def result_size(host):
    sizes = [size * KB for size in (1, 10, 30, 60, 120, 250, 500, 2000)]
    most = {}

    def outcome(size):
        call = host.meet({"tools": [tool("read", reply={"text": numbered(size)})]}).tool("read").get("call") or {}
        if not call.get("arrived"):
            return "it is not called"
        lost = "; ".join(call.get("changes", []))
        most[size] = kept(lost)
        return ("it is cut" if "cut: " in lost else lost) or None

    found = bisect(sizes, outcome)
    if "fails" in found:
        # Closer, in steps of a twentieth.
        low, high = found["works"], found["fails"]
        step = (high - low) // 20
        closer = bisect([*range(low + step, high, step), high], outcome)
        found = closer | {"works": max(low, closer["works"])}
    left = {kept for size, kept in most.items() if kept}
    return {"result.length": found | ({"left": max(left)} if left else {})}


# --- what a host does for a server -------------------------------------------------------------------------------------


def calls(host):
    """What becomes of results, what the host declares, and which lists it asks for."""
    seen = host.meet((SERVERS / "calls.yaml").read_text())
    found = {}
    agreed = seen.run.get("connection", {}).get("protocol", "")
    if not agreed:
        raise NotRun("it opened no session")
    for kind in (kind for kind, since in RESULTS.items() if since <= agreed):
        call = seen.tool(kind).get("call") or {}
        lost = "; ".join(call.get("changes", []))
        found[f"result.{kind}"] = (lost or "comes through") if call.get("arrived") else "not called"
    has, capabilities = seen.methods(), seen.capabilities()
    elicitation = capabilities.get("elicitation")
    extensions = capabilities.get("extensions") or {}
    sent = [request["params"].get("_meta") or {} for request in seen.requests("tools/call")]
    return found | {
        "feature.elicitation": elicitation is not None,
        "feature.elicitationUrl": "url" in (elicitation or {}),
        "feature.sampling": "sampling" in capabilities,
        "feature.roots": "roots" in capabilities,
        "feature.tasks": "tasks" in capabilities or any("tasks" in name for name in extensions),
        "feature.apps": any(name.endswith("/ui") for name in extensions),
        "asks.progress": any("progressToken" in meta for meta in sent),
        "asks.prompts": "prompts/list" in has,
        "asks.resources": "resources/list" in has,
        "asks.resourceTemplates": "resources/templates/list" in has,
        "asks.logging": "logging/setLevel" in has,
    }


def versions(host):
    server = {"tools": [tool("read")]}
    found = {f"version.{version}": calls_through(host, server | {"protocol": version}) for version in VERSIONS}
    seen = host.meet(server)
    preferred = seen.run.get("connection", {}).get("protocol") or "none"
    return found | {"transport.stdio": seen.arrived("read"), "version.preferred": preferred}


def transports(host):
    server = {"tools": [tool("read")]}
    return {f"transport.{name}": calls_through(host, server, transport=name) for name in ("http", "sse")}


def authorization(host):
    """A server that wants a token: whether the host looks for the authorization server."""
    with GuardedServer() as server:
        host.meet(None, url=server.url, transport="http")
        return {
            "authorization.metadata": any("oauth-protected-resource" in path for path in server.asked),
            "authorization.server": any(re.search("oauth-authorization-server|openid-config", path) for path in server.asked),
        }


# --- times -------------------------------------------------------------------------------------------------------------


def start_time(host):
    def outcome(seconds):
        server = {"tools": [tool("read")]}
        late = [{"on": {"method": method}, "do": {"delay": f"{seconds}s"}} for method in ("initialize", "server/discover")]
        # We list the tools of one that is not late.
        comes = calls_through(host, server | {"faults": late}, listed=server, seconds=seconds + PATIENCE)
        return None if comes else "the model does not see the tool"

    return {"time.start": bisect(TIMES, outcome)}


def call_time(host):
    def outcome(seconds):
        return of_call(host, [{"wait": f"{seconds}s"}], seconds)

    return {"time.call": bisect(CALL_TIMES, outcome)}


def call_time_with_progress(host):
    def outcome(seconds):
        steps = []
        for second in range(seconds):
            steps += [{"wait": "1s"}, {"progress": {"progress": second + 1, "total": seconds}}]
        return of_call(host, steps, seconds)

    return {"time.callWithProgress": bisect(CALL_TIMES, outcome)}


def of_call(host, steps, seconds):
    read = {"name": "read", "annotations": READ_ONLY, "steps": [*steps, {"reply": "The harbour is open."}]}
    call = host.meet({"tools": [read]}, seconds=seconds + PATIENCE).tool("read").get("call") or {}
    if not call.get("arrived"):
        raise NotRun("its call did not come to the server")
    return "; ".join(call.get("changes", [])) or None


QUICK = [names, name_characters, tool_count, list_change, descriptions, instructions, schemas, calls, result_size, versions,
         transports, authorization]
SLOW = [call_time, call_time_with_progress, start_time]
