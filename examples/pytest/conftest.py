import pytest


@pytest.fixture
def weather(mcp_mock):
    """The mock of a test. At the end, its expectations must be met, and its client must have kept the rules of MCP."""
    return mcp_mock("weather.yaml", verify=True, conformant=True)
