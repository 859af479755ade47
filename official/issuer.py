"""The mock's own issuer as the authorization server that the suite tests."""

import socket
import time
from urllib.request import urlopen

from processes import REHEARSE, SECONDS, Failure
from suite import Group, Suite

SCRIPT = "auth: { issuer: { clients: [{ id: suite }], metadata: { client_id_metadata_document_supported: true } } }"
SKIPPABLE = {}
# The second one needs what the first one has found, so they are run together.
SCENARIOS = ("authorization-server-metadata-endpoint", "authorization-code-grant")


class UserSuite(Suite):
    """The suite with a user, who opens the URL that it prints. The mock redirects the user back at once."""

    def run(self, *arguments):
        if arguments[0] != "authorization":
            return super().run(*arguments)
        lines = []
        url = self.processes.listen([*self.command, *arguments], r"(http://\S+/authorize\?\S+)", lines=lines)
        deadline = time.monotonic() + SECONDS
        # It listens only after it has printed the URL.
        while not any("Callback server started" in line for line in lines):
            if time.monotonic() > deadline:
                raise Failure("the suite does not listen for the user")
            time.sleep(0.05)
        urlopen(url, timeout=SECONDS).close()
        code = self.processes.running[-1].wait(SECONDS)
        return code, "".join(lines), ""


def groups(processes, folder, results, names):
    """One run of the suite against a mock."""
    if names and not any(word.lower() in name for word in names for name in SCENARIOS):
        return
    suite = UserSuite(processes, folder, "@modelcontextprotocol/conformance")
    results = results / "authorization"
    results.mkdir(parents=True)
    script = results / "issuer.yaml"
    script.write_text(SCRIPT)
    issuer = processes.listen([REHEARSE, "mock", str(script), "--listen", "127.0.0.1:0"], r"(http://127\.0\.0\.1:\d+)/mcp")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    yield Group(
        title=f"authorization server · all · {suite.version}",
        suite=suite,
        leg="authorization",
        counts=(2, 0),
        selection=[],
        single=[],
        target=["--url", issuer, "--client-id", "suite", "--port", port],
        results=results / "all",
        skippable=SKIPPABLE,
        names=[],
    )
