"""The model is a script, so the tests need no key and no network; they check what the agent tells it."""

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from weather_agent import ask


def scripted(*turns):
    """A model that answers with these parts, turn by turn."""
    turns = iter(turns)
    return FunctionModel(lambda messages, info: ModelResponse(parts=next(turns)))


def forecast(city):
    return ToolCallPart("forecast", {"city": city})


def told(result):
    """What the agent told the model about its calls."""
    parts = [part for message in result.all_messages() for part in message.parts]
    return [(part.outcome, part.content) for part in parts if isinstance(part, ToolReturnPart)]


def test_the_model_is_told_the_forecasts(weather):
    model = scripted([forecast("Oslo"), forecast("Rome")], [TextPart("Rome")])
    result = ask(weather.url, "Which is warmer, Oslo or Rome?", model)
    assert told(result) == [("success", {"celsius": -3.5}), ("success", {"celsius": 21})]
    # The agent calls both at the same time.
    assert sorted(call["city"] for call in weather.calls()) == ["Oslo", "Rome"]


def test_the_model_is_told_that_the_server_is_busy_and_tries_again(weather):
    replies = [{"error": "busy"}, {"structured": {"celsius": 30}}]
    weather.add_rule({"replies": replies, "expect": {"calls": 2}}, tool="forecast")
    model = scripted([forecast("Oslo")], [forecast("Oslo")], [TextPart("30 °C")])
    result = ask(weather.url, "How warm is Oslo?", model)
    assert told(result) == [("retried", "busy"), ("success", {"celsius": 30})]
