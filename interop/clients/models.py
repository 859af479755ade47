"""The SDKs of Anthropic and OpenAI against a scripted model: `models.py URL`. Writes one JSON line for each check."""

import json
import sys

import anthropic
import openai

URL = sys.argv[1]
CLAUDE = anthropic.Anthropic(base_url=URL, api_key="none")
GPT = openai.OpenAI(base_url=f"{URL}/v1", api_key="none")
WEATHER = "What is the weather in Paris?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
ARGUMENTS = {"city": "Paris", "days": 2}


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"{actual!r} instead of {expected!r}")


def refused(kind, ask):
    try:
        ask("refused")
    except kind as error:
        equal((error.status_code, "invalid API key" in str(error)), (401, True))
        return
    raise AssertionError("it was not refused")


class Messages:
    tools = [{"name": "weather", "input_schema": SCHEMA}]

    def question(self, text, *more):
        messages = [{"role": "user", "content": text}, *more]
        return {"model": "m", "max_tokens": 99, "system": "Ada", "tools": self.tools, "messages": messages}

    def ask(self, text, *more):
        return CLAUDE.messages.create(**self.question(text, *more))

    def text(self):
        answer = self.ask("you")
        equal((answer.content[0].text, answer.stop_reason, answer.model), ("Hello you, says Ada!", "end_turn", "m"))
        equal(answer.usage.output_tokens > 0, True)

    def calls(self, answer):
        equal([(block.type) for block in answer.content], ["thinking", "text", "tool_use"])
        equal((answer.content[2].input, answer.stop_reason), (ARGUMENTS, "tool_use"))
        result = {"type": "tool_result", "tool_use_id": answer.content[2].id, "content": [{"type": "text", "text": "rain"}]}
        more = [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
        equal(self.ask(WEATHER, *more).content[0].text, "In Paris: rain")

    def tools_round(self):
        self.calls(self.ask(WEATHER))

    def stream(self):
        with CLAUDE.messages.stream(**self.question(WEATHER)) as stream:
            equal("".join(stream.text_stream), "One moment.")
            self.calls(stream.get_final_message())

    def errors(self):
        equal(self.ask("retry messages").content[0].text, "again")
        refused(anthropic.AuthenticationError, self.ask)


class Chat:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]

    def question(self, text, *more):
        messages = [{"role": "developer", "content": "Ada"}, {"role": "user", "content": text}, *more]
        return {"model": "m", "tools": self.tools, "messages": messages}

    def ask(self, text, *more):
        return GPT.chat.completions.create(**self.question(text, *more))

    def text(self):
        answer = self.ask("you")
        choice = answer.choices[0]
        equal((choice.message.content, choice.finish_reason, answer.model), ("Hello you, says Ada!", "stop", "m"))
        equal(answer.usage.completion_tokens > 0, True)

    def calls(self, answer):
        message = answer.choices[0].message
        call = message.tool_calls[0]
        equal((message.content, call.function.name), ("One moment.", "weather"))
        equal((json.loads(call.function.arguments), answer.choices[0].finish_reason), (ARGUMENTS, "tool_calls"))
        more = [message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
        equal(self.ask(WEATHER, *more).choices[0].message.content, "In Paris: rain")

    def tools_round(self):
        self.calls(self.ask(WEATHER))

    def stream(self):
        usage = {"include_usage": True}
        with GPT.chat.completions.stream(**self.question(WEATHER), stream_options=usage) as stream:
            equal("".join(event.delta for event in stream if event.type == "content.delta"), "One moment.")
            answer = stream.get_final_completion()
            equal(answer.usage.prompt_tokens > 0, True)
            self.calls(answer)

    def errors(self):
        equal(self.ask("retry chat").choices[0].message.content, "again")
        refused(openai.AuthenticationError, self.ask)


class Responses:
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]

    def question(self, text, *more):
        return {"model": "m", "instructions": "Ada", "tools": self.tools, "input": [{"role": "user", "content": text}, *more]}

    def ask(self, text, *more):
        return GPT.responses.create(**self.question(text, *more))

    def text(self):
        answer = self.ask("you")
        equal((answer.output_text, answer.status, answer.model), ("Hello you, says Ada!", "completed", "m"))
        equal(answer.usage.output_tokens > 0, True)

    def calls(self, answer):
        equal([item.type for item in answer.output], ["reasoning", "message", "function_call"])
        call = answer.output[2]
        equal((call.name, json.loads(call.arguments)), ("weather", ARGUMENTS))
        more = [*answer.output, {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
        equal(self.ask(WEATHER, *more).output_text, "In Paris: rain")

    def tools_round(self):
        self.calls(self.ask(WEATHER))

    def stream(self):
        with GPT.responses.stream(**self.question(WEATHER)) as stream:
            equal("".join(event.delta for event in stream if event.type == "response.output_text.delta"), "One moment.")
            self.calls(stream.get_final_response())

    def errors(self):
        equal(self.ask("retry responses").output_text, "again")
        refused(openai.AuthenticationError, self.ask)


for api in (Messages(), Chat(), Responses()):
    for name in ("text", "tools_round", "stream", "errors"):
        error = None
        try:
            getattr(api, name)()
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        print(json.dumps({"check": f"{type(api).__name__.lower()}_{name}", "error": error}), flush=True)
