"""Mock MCP servers, scripted models and conformance checks, by the program `rehearse`."""

from ._check import check, fuzz, run
from ._program import RehearseError, rehearse_path
from ._server import Mock, Model

__all__ = ["Mock", "Model", "RehearseError", "check", "fuzz", "rehearse_path", "run"]
