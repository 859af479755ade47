"""The same with an agent of Pydantic AI: a language model asks the weather server."""

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


def ask(url, question, model):
    return Agent(model, toolsets=[MCPToolset(url)]).run_sync(question)
