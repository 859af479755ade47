"""The program `rehearse`."""

import os
import shutil
import site
import sysconfig


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
    folders = [sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin")]
    path = shutil.which("rehearse", path=os.pathsep.join(folders)) or shutil.which("rehearse")
    if path is None:
        hint = "hint: install the package mcp-rehearsal again, or set REHEARSE to the path of the program"
        raise RehearseError(f"the program `rehearse` is not in {', '.join(folders)} or on the PATH\n{hint}")
    return path
