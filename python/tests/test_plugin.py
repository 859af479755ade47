"""The fixtures, in test files of their own."""

import pytest

SHOP = """
server: { name: shop, version: 1.0.0 }
tools:
  - name: price/list
    description: The price.
    annotations: { readOnlyHint: true }
    outputSchema: { type: object, required: [amount] }
    expect: { calls: 1 }
    reply: { result: { content: [], structuredContent: { sum: 1 } } }
"""


@pytest.fixture
def tests(pytester):
    """Runs the text as a test file, beside a script."""
    folder = pytester.mkdir("folder")
    folder.joinpath("shop.yaml").write_text(SHOP)

    def run(text):
        folder.joinpath("test_it.py").write_text(f"import pytest\nfrom client import call\n{text}")
        return pytester.runpytest_inprocess("-p", "no:cacheprovider")

    return run


def test_the_marker_verifies_at_the_end_of_a_test(tests):
    result = tests(
        """
pytestmark = pytest.mark.mcp_mock(verify=True)

def test_met(mcp_mock):
    call(mcp_mock("shop.yaml").url, "price/list", {})

def test_unmet(mcp_mock):
    call(mcp_mock("shop.yaml").url, "cost", {})

def test_not_verified(mcp_mock):
    mcp_mock("shop.yaml", verify=False)

@pytest.mark.xfail(strict=True)
def test_expected(mcp_mock):
    mcp_mock("shop.yaml")

@pytest.mark.mcp_mock(conformant=True)
def test_not_conformant(mcp_mock):
    with pytest.raises(OSError):
        call(mcp_mock("basic").url, "echo", {"text": ""}, name="fail")

@pytest.mark.mcp_mock(conform=True)
def test_wrong_marker(mcp_mock):
    mcp_mock("shop.yaml")
"""
    )
    result.assert_outcomes(passed=2, failed=3, xfailed=1)
    expected = ["*_ test_unmet _*", "the mock shop.yaml expected something else:"]
    expected += ["tools.price/list: expected 1 call, got 0 calls", "*- mock shop.yaml -*"]
    expected += ['http  tools/call {"name": "cost", "arguments": {}}  no rule matched: *']
    result.stdout.no_fnmatch_line("*During handling*")
    expected += ["*_ test_not_conformant _*", "a client of the mock basic violates the specification:", "  client-*"]
    result.stdout.fnmatch_lines([*expected, "*_ test_wrong_marker _*", "E *TypeError*'conform'*"])


def test_nothing_is_verified_silently_and_a_failed_test_shows_its_servers(tests):
    result = tests(
        """
def test_passes(mcp_mock):
    mcp_mock("shop.yaml")

def test_fails(mcp_mock, mcp_model):
    call(mcp_mock("shop.yaml").url, "price/list", {})
    mcp_model({"rules": []})
    mcp_mock({"tools": "none"})
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    servers = ["*- mock shop.yaml -*", "http  tools/call *  tools.price/list → result", "*- model script.yaml -*"]
    result.stdout.fnmatch_lines(servers)
    result.stdout.no_fnmatch_line("*_server.py*")


def test_checks(tests):
    result = tests(
        """
from mcp_rehearsal import RehearseError

BROKEN = "tools.call.structured-matches-schema"

def test_report(mcp_mock, mcp_check):
    mcp_check(mcp_mock("shop.yaml").stdio_command, only=BROKEN, protocol=["2025-11-25", "2026-07-28"])

@pytest.mark.parametrize("transport", ["http", "sse", "ws"])
def test_urls(mcp_mock, mcp_check, transport):
    url = getattr(mcp_mock("shop.yaml"), "url" if transport == "http" else f"{transport}_url")
    assert mcp_check(url, only=["tools.list"], protocol="2025-03-26")["servers"][0]["transport"] == transport

def test_strict_and_allowed_tools(mcp_mock, mcp_check):
    options = {"only": ["tools.list.name-charset", "tools.call.works"], "protocol": "2026-07-28"}
    server = mcp_mock({"server": {"name": "s"}, "tools": [{"name": "a/b", "reply": "x"}]})
    totals = mcp_check(server.url, allow_tools="a*", **options)["totals"]
    assert (totals["warnings"], totals["passed"]) == (1, 1)
    with pytest.raises(AssertionError, match="✗ tools.list.name-charset .SHOULD"):
        mcp_check(server.url, strict=True, **options)

def test_session(mcp_mock, mcp_check, mcp_fuzz):
    tool = {"name": "add", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}, "reply": "{{ args.a }}"}
    server = mcp_mock({"auth": {"tokens": [{"token": "of-this-test"}]}, "tools": [tool]})
    with pytest.raises(RehearseError, match="--token"):
        mcp_check(server.url)
    session = {"token": "of-this-test", "headers": {"X-A": "b"}, "tool_args": {"add": {"a": "of this test"}}}
    mcp_check(server.url, only=["tools.list", "tools.call"], timeout="5s", args=["--grace", "100ms"], **session)
    assert {"a": "of this test"} in server.calls("add")
    mcp_fuzz(server.url, budget="5s", cases=3, start_timeout="20s", **session)

def test_baseline(mcp_mock, mcp_check, tmp_path):
    baseline = tmp_path / "accepted.yaml"
    for check in BROKEN, "tools.list.name-unique":
        baseline.write_text("version: 1\\naccept: [{ id: %s, reason: known }]" % check)
        mcp_check(mcp_mock("shop.yaml").url, only=[BROKEN, "tools.list"], protocol="2025-11-25", baseline=baseline)

def test_no_server(mcp_check):
    mcp_check("false")

def test_no_check(mcp_check):
    mcp_check("false", only="no.check")
"""
    )
    result.assert_outcomes(passed=5, failed=4)
    result.stdout.fnmatch_lines(
        [
            "*_ test_report _*",
            "E *AssertionError: the server does not keep to the specification",
            "E *✗ tools.call.structured-matches-schema (MUST, 2026-07-28, 2025-11-25)",
            'E * price/list: found "amount" is a required property',
            "E * → *",
            'E * ← {"jsonrpc":"2.0"*"sum":1*',
            "E * again: rehearse check --stdio * --only tools.call.structured-matches-schema",
            "*_ test_baseline _*",
            "E *✗ the baseline *accepted.yaml accepts what no longer occurs: tools.list.name-unique",
            "*_ test_no_server _*",
            "E *RehearseError: the server cannot be checked (exit code 3):",
            "E *false: the server ended with code 1 before it answered*",
            "*_ test_no_check _*",
            'E *there is no check "no.check"*',
        ]
    )


def test_scenarios(tests):
    result = tests(
        """
from pathlib import Path

def run(mcp_run, text, filters):
    step = "{ call: { tool: echo, args: { text: Oslo } }, expect: { text: %s } }" % text
    scenario = Path(__file__).with_name("echo.yaml")
    scenario.write_text("servers: { s: { mock: basic } }\\nsteps: [%s]" % step)
    return mcp_run("echo.yaml", filters=filters)

def test_passes(mcp_run):
    assert "1 passed" in run(mcp_run, "Oslo", "http/2025-11-25")

def test_fails(mcp_run):
    run(mcp_run, "Rome", ["http/2025-11-25", "ws/2025-11-25"])

def test_no_scenario(mcp_run):
    mcp_run("nowhere.yaml")
"""
    )
    result.assert_outcomes(passed=1, failed=2)
    expected = ["E *AssertionError: a scenario failed:", "E *✗ echo: call echo", "E *2 failed*"]
    result.stdout.fnmatch_lines([*expected, "E *RehearseError: the scenarios cannot run (exit code *", "E *nowhere.yaml*"])


def test_fuzz(pytester):
    pytester.makepyfile(
        """
import pytest
from mcp_rehearsal import RehearseError

def tool(name, **keys):
    return {"name": name, "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}, **keys}

def test_good(mcp_mock, mcp_fuzz):
    report = mcp_fuzz(mcp_mock({"tools": [tool("fine", reply="x")]}).stdio_command, cases=5, seed=2)
    assert (report["verdict"], report["seed"]) == ("passed", 2)

def test_bug(mcp_mock, mcp_fuzz):
    mcp_fuzz(mcp_mock({"tools": [tool("ends", steps=[{"exit": 3}])]}).stdio_command, cases=5)

def test_nothing(mcp_mock, mcp_fuzz):
    with pytest.raises(RehearseError, match="tool a: it is not annotated with readOnlyHint"):
        mcp_fuzz(mcp_mock({"tools": [{"name": "a", "reply": "x"}]}).stdio_command, cases=5)
"""
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E *AssertionError: an input breaks the server", "E *✗ crash tool ends", "E *with {}"])
