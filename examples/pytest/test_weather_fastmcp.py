import asyncio

import pytest
from fastmcp.exceptions import ToolError

from weather_fastmcp import warmer


def test_the_warmer_city_wins(weather):
    assert asyncio.run(warmer(weather.url, ["Oslo", "Rome"])) == "Rome"
    assert weather.calls() == [{"city": "Oslo"}, {"city": "Rome"}]


def test_a_server_that_stays_busy_is_given_up(weather):
    weather.add_rule({"reply": {"error": "busy"}, "expect": {"calls": 2}}, tool="forecast")
    with pytest.raises(ToolError, match="busy"):
        asyncio.run(warmer(weather.url, ["Oslo", "Rome"]))
