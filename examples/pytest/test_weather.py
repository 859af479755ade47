import asyncio

import pytest

from weather import Busy, warmer


def test_the_warmer_city_wins(weather):
    assert asyncio.run(warmer(weather.url, ["Oslo", "Rome"])) == "Rome"
    assert weather.calls() == [{"city": "Oslo"}, {"city": "Rome"}]


def test_a_busy_server_is_asked_once_more(weather):
    replies = [{"error": "busy"}, {"structured": {"celsius": 30}}]
    rule = {"when": {"args": {"city": "Oslo"}}, "replies": replies, "expect": {"calls": 2}}
    weather.add_rule(rule, tool="forecast")
    assert asyncio.run(warmer(weather.url, ["Oslo", "Rome"])) == "Oslo"


def test_a_server_that_stays_busy_is_given_up(weather):
    weather.add_rule({"reply": {"error": "busy"}, "expect": {"calls": 2}}, tool="forecast")
    # The SDK raises what is raised in `async with Client` as a group.
    with pytest.RaisesGroup(Busy, flatten_subgroups=True):
        asyncio.run(warmer(weather.url, ["Oslo", "Rome"]))
