"""The pytest plugin: fixtures that serve mocks and models for a test, check servers and run scenarios."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from . import Mock, Model, check, fuzz, run
from ._server import Script, Server, describe

_SERVERS = pytest.StashKey[list[Server]]()
_VERIFICATIONS = pytest.StashKey[list[Callable[[], None]]]()

def _beside(request: pytest.FixtureRequest, path: Any) -> Any:
    """The path in the folder of the test, if there is such a file. Otherwise what was given: a path from the current
    folder, the name of a built-in script, or a script.
    """
    if not hasattr(path, "keys") and Path(request.path.parent, path).exists():
        return Path(request.path.parent, path)
    return path


@pytest.fixture
def mcp_mock(request: pytest.FixtureRequest) -> Iterator[Callable[..., Mock]]:
    """Starts mock MCP servers: mcp_mock("weather.yaml"), mcp_mock({"tools": [...]}), mcp_mock("basic").

    With `verify=True` and `conformant=True`, the end of the test calls `verify` and `assert_conformant`. The marker
    `mcp_mock` has the same options for all mocks of a test.
    """
    marker = request.node.get_closest_marker("mcp_mock")
    with ExitStack() as stack:

        def start(script: Script, *, verify: bool = False, conformant: bool = False) -> Mock:
            __tracebackhide__ = True
            mock = stack.enter_context(Mock(_beside(request, script)))
            request.node.stash[_SERVERS].append(mock)
            request.node.stash[_VERIFICATIONS] += [mock.verify] * verify + [mock.assert_conformant] * conformant
            return mock

        yield partial(start, **marker.kwargs if marker else {})


@pytest.fixture
def mcp_model(request: pytest.FixtureRequest) -> Iterator[Callable[[Script], Model]]:
    """Starts scripted language models: mcp_model("review.yaml"), mcp_model({"rules": [...]})."""
    with ExitStack() as stack:

        def start(script: Script) -> Model:
            __tracebackhide__ = True
            model = stack.enter_context(Model(_beside(request, script)))
            request.node.stash[_SERVERS].append(model)
            return model

        yield start


@pytest.fixture
def mcp_check() -> Callable[..., dict[str, Any]]:
    """Checks a server against the MCP specification: mcp_check("node server.js"), mcp_check("http://…/mcp")."""
    return check


@pytest.fixture
def mcp_fuzz() -> Callable[..., dict[str, Any]]:
    """Looks for inputs that break a server: mcp_fuzz("node server.js", allow_tools="search*")."""
    return fuzz


@pytest.fixture
def mcp_run(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Runs scenarios: mcp_run("scenarios")."""

    def run_here(*paths: Any, **options: Any) -> str:
        __tracebackhide__ = True
        return run(*(_beside(request, path) for path in paths), **options)

    return run_here


def pytest_configure(config: pytest.Config) -> None:
    marker = "mcp_mock(verify=True, conformant=True): at the end of the test, verify its mocks and check their clients"
    config.addinivalue_line("markers", marker)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_SERVERS] = []
    item.stash[_VERIFICATIONS] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    for verify in item.stash[_VERIFICATIONS]:
        failure = None
        try:
            verify()
        except AssertionError as error:
            failure = str(error)
        if failure:
            pytest.fail(failure, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += [(server.name, describe(server)) for server in item.stash[_SERVERS]]
    return report
