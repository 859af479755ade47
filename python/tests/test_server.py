"""Mocks, models and the program without pytest's fixtures."""

import json
import os
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
from client import call, post

from mcp_rehearsal import Mock, Model, RehearseError, rehearse_path

SHOP = {
    "server": {"name": "shop"},
    "state": {"open": True},
    "tools": [{"name": "buy", "rules": [{"when": {"args": {"what": "pears"}}, "expect": {"calls": 1}, "reply": "Here."}]}],
}


@pytest.fixture
def mock():
    with Mock(SHOP) as mock:
        yield mock


def test_every_transport_leads_to_one_mock(mock):
    call(mock.url, "buy", {"what": "pears"})
    ping = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    done = subprocess.run(mock.stdio_command, input=f"{ping}\n", capture_output=True, text=True)
    assert json.loads(done.stdout)["id"] == 7
    arrived = [(entry["transport"], entry["method"]) for entry in mock.journal()]
    assert arrived == [("http", "tools/call"), ("stdio", "ping")]
    assert mock.sse_url == mock.url.replace("/mcp", "/sse")
    assert mock.ws_url == mock.url.replace("http:", "ws:").replace("/mcp", "/ws")
    with pytest.raises(RehearseError, match="the mock script.yaml has no token"):
        mock.token


def test_calls_state_rules_and_reset(mock):
    mock.add_rule({"when": {"args": {"what": "plums"}}, "reply": "Sold out."}, tool="buy")
    assert call(mock.url, "buy", {"what": "plums"})["result"]["content"][0]["text"] == "Sold out."
    assert mock.calls("buy") == mock.calls() == [{"what": "plums"}]
    assert mock.calls("sell") == []
    mock.state = {"open": False}
    assert mock.state == {"open": False}
    mock.reset()
    assert (mock.state, mock.calls()) == ({"open": True}, [])
    with pytest.raises(RehearseError, match="refuses POST /rules.*did you mean `reply`"):
        mock.add_rule({"repply": "No."}, tool="buy")


def test_verify_shows_the_closest_request(mock):
    call(mock.url, "buy", {"what": "figs"})
    with pytest.raises(AssertionError, match='(?s)tools.buy.rules.0.: expected 1 call.*closest request: .*"figs"'):
        mock.verify()
    mock.reset()
    call(mock.url, "buy", {"what": "pears"})
    mock.verify()


def test_a_client_that_violates_a_rule(mock):
    mock.assert_conformant()
    with pytest.raises(HTTPError):
        call(mock.url, "buy", {"what": "pears"}, name="sell")
    with pytest.raises(AssertionError, match=r"(?s)violates the specification:\n  client-\S+ \(2026-07-28\): .*hint:"):
        mock.assert_conformant()


def test_a_model_answers_both_providers():
    with Model({"rules": [{"reply": "Hello."}]}) as model:
        question = {"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        assert post(f"{model.url}/v1/messages", question, {})["content"][0]["text"] == "Hello."
        answer = post(f"{model.openai_url}/chat/completions", question, {})
        assert answer["choices"][0]["message"]["content"] == "Hello."


def test_a_script_with_a_mistake():
    with pytest.raises(RehearseError, match="(?s)cannot serve the mock script.yaml .exit code 2.*did you mean `name`"):
        Mock({"tools": [{"nam": "x"}]})


def connect(url):
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def test_stop_ends_a_mock_and_keeps_its_log():
    with Mock(SHOP) as mock, connect(mock.url) as connection:
        mock.stop()
        assert connection.recv(1) == b""
        assert mock.log.startswith("shop listens on")
        with pytest.raises(RehearseError, match="the mock script.yaml does not answer: it has ended with exit code 1"):
            mock.journal()


def test_a_mock_that_has_died(mock):
    mock._process.kill()
    mock._process.wait()
    with pytest.raises(RehearseError, match="the mock script.yaml does not answer: it has ended with exit code -9"):
        mock.verify()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_mock_ends_with_the_process_that_started_it(how):
    code = "import sys, mcp_rehearsal; print(mcp_rehearsal.Mock('basic').url, flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as process:
        with connect(process.stdout.readline()) as connection:
            process.send_signal(how)
            assert connection.recv(1) == b""


def test_the_program_is_found(monkeypatch, tmp_path):
    def rehearse(*arguments):
        return subprocess.run([sys.executable, "-m", "mcp_rehearsal", *arguments], capture_output=True, text=True)

    monkeypatch.delenv("REHEARSE", raising=False)
    assert os.path.dirname(rehearse_path()) == os.path.dirname(sys.executable)
    assert rehearse("--version").stdout == f"rehearse {version('mcp-rehearsal')}\n"
    program = tmp_path / "rehearse"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    monkeypatch.setenv("REHEARSE", str(program))
    assert rehearse().stdout == "mine\n"
    monkeypatch.setenv("REHEARSE", "/nowhere/rehearse")
    wrong = rehearse()
    assert wrong.returncode == 3
    assert wrong.stderr.startswith("error: REHEARSE is '/nowhere/rehearse', which is not a program\nhint: set REHEARSE")
    monkeypatch.delenv("REHEARSE")
    monkeypatch.setattr("sysconfig.get_path", lambda *names: "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rehearse_path() == str(program)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RehearseError, match="is not in /nowhere.*\nhint: install the package"):
        rehearse_path()


def test_the_command_with_the_name_of_the_package_is_the_program(monkeypatch):
    command = os.path.join(os.path.dirname(sys.executable), "mcp-rehearsal")
    monkeypatch.delenv("REHEARSE", raising=False)
    assert subprocess.check_output([command, "--version"], text=True) == f"rehearse {version('mcp-rehearsal')}\n"


def test_a_launcher_that_cannot_be_replaced_leaves_an_interrupt_to_the_program(monkeypatch, tmp_path):
    program = tmp_path / "rehearse"
    program.write_text("#!/bin/sh\necho $1; cat; exit 7\n")
    program.chmod(0o755)
    monkeypatch.setenv("REHEARSE", str(program))
    code = "import sys; from mcp_rehearsal._program import launch; sys.exit(launch(['up'], can_exec=False))"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as launcher:
        assert launcher.stdout.readline() == "up\n"
        launcher.send_signal(signal.SIGINT)
        assert launcher.communicate("rest") == ("rest", None)
    assert launcher.returncode == 7
