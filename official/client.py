"""The client of `rehearse`, in the program that the suite tests: `client.rs`."""

from processes import TARGET
from suite import Group, Suite

# Checks that the suite does not make of any client that does what it should.
SKIPPABLE = {
    (
        "http-standard-headers",
        "sep-2243-client-includes-standard-headers",
    ): "2026-07-28 has neither initialize nor notifications/initialized",
}


def groups(processes, folder, results, names):
    """Runs of the suite, which starts the client anew for each scenario."""
    suite = Suite(processes, folder, "@modelcontextprotocol/conformance")
    results = results / "client"
    results.mkdir(parents=True)

    def group(name, counts, selection, single):
        return Group(
            title=f"client · {name} · {suite.version}",
            suite=suite,
            leg="client",
            counts=counts,
            selection=selection,
            single=single,
            target=["--command", f"{TARGET}/debug/examples/conformance_client"],
            results=results / name,
            skippable=SKIPPABLE,
            names=names,
        )

    for revision, counts in (("2025-11-25", (18, 7)), ("2026-07-28", (32, 7))):
        yield group(revision, counts, ["--requirements", revision], ["--spec-version", revision, "--force"])
    yield group("all", (48, 0), ["--suite", "all"], [])
