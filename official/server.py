"""The mock as the server that the suite tests."""

from processes import REHEARSE, ROOT, Failure
from suite import Group, Suite

SCRIPT = ROOT / "mock-servers/everything.yaml"
# Checks that the suite does not make of any server that does what the script says.
SKIPPABLE = {
    ("tasks-status-notifications", "tasks-status-notifications"): "the suite has yet to write this check",
}


def groups(processes, folder, results, names):
    """Runs of the suite against one mock, which lives through all of them."""
    new = Suite(processes, folder, "@modelcontextprotocol/conformance")
    old = Suite(processes, folder, "conformance-0-1")
    results = results / "server"
    results.mkdir(parents=True)
    command = [REHEARSE, "mock", str(SCRIPT), "--listen", "127.0.0.1:0", "--journal", str(results / "journal.jsonl")]
    lines = []
    url = processes.listen(command, r"(http://127\.0\.0\.1:\d+/mcp)", lines=lines)

    def group(suite, name, counts, selection, single):
        return Group(
            title=f"server · {name} · {suite.version}",
            suite=suite,
            leg="server",
            counts=counts,
            selection=selection,
            single=single,
            target=["--url", url],
            results=results / name,
            skippable=SKIPPABLE,
            names=names,
        )

    for revision, counts in (("2025-11-25", (30, 3)), ("2026-07-28", (37, 13))):
        yield group(new, revision, counts, ["--requirements", revision], ["--spec-version", revision, "--force"])
    yield group(new, "all", (65, 0), ["--suite", "all"], [])
    yield group(old, "all-0.1", (32, 0), ["--suite", "all"], [])
    if panics := [line for line in lines if "panicked" in line]:
        raise Failure(f"the mock {panics[0]}")
