"""The program `rehearse`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig

_CANNOT_RUN = 3


class RehearseError(Exception):
    """`rehearse` cannot do its work. The message says why."""


def rehearse_path() -> str:
    """The path of the program: what REHEARSE names, else the one that was installed with this package, else the first
    one on the PATH. Raises RehearseError if there is none.
    """
    named = os.environ.get("REHEARSE")
    if named:
        path = shutil.which(named)
        if path is None:
            hint = "hint: set REHEARSE to the path of the program `rehearse`, or unset it"
            raise RehearseError(f"REHEARSE is {named!r}, which is not a program\n{hint}")
        return path
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    path = shutil.which("rehearse", path=os.pathsep.join(folders)) or shutil.which("rehearse")
    if path is None:
        hint = "hint: install the package mcp-rehearsal again, or set REHEARSE to the path of the program"
        raise RehearseError(f"the program `rehearse` is not in {', '.join(folders)} or on the PATH\n{hint}")
    return path


def launch(arguments: list[str], can_exec: bool = os.name == "posix") -> int:
    """Runs the program as if it were this process. Returns its exit code if it cannot take the place of this process."""
    try:
        path = rehearse_path()
    except RehearseError as error:
        print(f"error: {error}", file=sys.stderr)
        return _CANNOT_RUN
    if can_exec:
        os.execv(path, [path, *arguments])
    # A console of Windows sends its events to both processes, and `rehearse` decides what they mean.
    for name in "SIGINT", "SIGBREAK":
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: None)
    return subprocess.call([path, *arguments])
