import asyncio

import pytest

from weather import Busy, warmer


def test_the_warmer_city_wins(weather):
    assert asyncio.run(warmer(weather.url, ["Oslo", "Rome"])) == "Rome"
    assert weather.calls() == [{"city": "Oslo"}, {"city": "Rome"}]


def test_a_busy_server_is_asked_once_more(weather):
    oslo = {"args": {"city": "Oslo"}}
    replies = [{"error": "busy"}, {"structured": {"celsius": 30}}]
    weather.rule("forecast", when=oslo, replies=replies, expect={"calls": 2})
    assert asyncio.run(warmer(weather.url, ["Oslo", "Rome"])) == "Oslo"


def test_a_server_that_stays_busy_is_given_up(weather):
    weather.rule("forecast", reply={"error": "busy"}, expect={"calls": 2})
    # The SDK raises what is raised in `async with Client` as a group.
    with pytest.RaisesGroup(Busy, flatten_subgroups=True):
        asyncio.run(warmer(weather.url, ["Oslo", "Rome"]))
