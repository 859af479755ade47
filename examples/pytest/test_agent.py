from pathlib import Path

from agent import ask
from mcp_rehearsal import rehearse_path

# The model wants a forecast, and then repeats it.
MODEL = {"rules": [{"turns": [{"calls": [{"tool": "forecast", "args": {"city": "Oslo"}}]}, "Oslo: {{ result }}"]}]}


def test_the_agent_calls_the_tool_that_the_model_wants(weather, mcp_model):
    assert ask("How warm is Oslo?", weather.url, mcp_model(MODEL).url) == 'Oslo: {"celsius":-3.5}'
    assert weather.calls("forecast") == [{"city": "Oslo"}]


def test_the_agent_hands_an_error_to_the_model(weather, mcp_model):
    weather.add_rule({"reply": {"error": "busy"}, "expect": {"calls": 1}}, tool="forecast")
    assert ask("How warm is Oslo?", weather.url, mcp_model(MODEL).url) == "Oslo: busy"


def test_a_server_that_a_command_starts_keeps_to_the_specification(mcp_check):
    # Your own server is [sys.executable, "server.py"].
    command = [rehearse_path(), "mock", str(Path(__file__).with_name("weather.yaml"))]
    report = mcp_check(command, allow_tools="forecast", protocol="2026-07-28")
    assert report["totals"]["passed"] > 50
