"""`python -m mcp_rehearsal …` is `rehearse …`."""

import os
import sys

from ._program import RehearseError, rehearse_path

try:
    path = rehearse_path()
except RehearseError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(3)
os.execv(path, [path, *sys.argv[1:]])
