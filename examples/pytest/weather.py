"""The code under test: asks a weather server for the warmer of two cities, with the official Python SDK."""

from mcp import Client


class Busy(Exception):
    pass


async def warmer(url, cities):
    async with Client(url) as client:
        celsius = {city: await forecast(client, city) for city in cities}
    return max(celsius, key=celsius.get)


async def forecast(client, city, attempts=2):
    for _ in range(attempts):
        result = await client.call_tool("forecast", {"city": city})
        if not result.is_error:
            return result.structured_content["celsius"]
    raise Busy(city)
