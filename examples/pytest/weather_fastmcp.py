"""The same with the client of FastMCP, which raises the error of a tool."""

from fastmcp import Client
from fastmcp.exceptions import ToolError


async def warmer(url, cities):
    async with Client(url) as client:
        celsius = {city: await forecast(client, city) for city in cities}
    return max(celsius, key=celsius.get)


async def forecast(client, city):
    try:
        result = await client.call_tool("forecast", {"city": city})
    except ToolError:
        result = await client.call_tool("forecast", {"city": city})
    return result.structured_content["celsius"]
