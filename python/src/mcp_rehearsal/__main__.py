"""`python -m mcp_rehearsal …` and `mcp-rehearsal …` are `rehearse …`."""

import sys

from ._program import launch


def main() -> None:
    sys.exit(launch(sys.argv[1:]))


if __name__ == "__main__":
    main()
