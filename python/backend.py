"""Builds the wheel for this system: with the program that REHEARSE names, or with one that cargo builds.

https://packaging.python.org/en/latest/specifications/pyproject-toml/ and PEP 517.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "packaging"))

from distribution.project import Project  # noqa: E402
from distribution.target import has_interpreter, target_of  # noqa: E402
from distribution.wheel import write_wheel  # noqa: E402


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    binary = os.environ.get("REHEARSE") or _build()
    target = target_of(binary)
    is_dynamic = target.is_linux and has_interpreter(Path(binary).read_bytes())
    # Such a program needs the C library of this machine, or a newer one.
    platform = sysconfig.get_platform().replace("-", "_") if is_dynamic else None
    return write_wheel(Path(wheel_directory), Project(), target, binary, platform).name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("a source of this package alone cannot be built; build the wheel in a clone of the repository")


def _build():
    subprocess.run(["cargo", "build", "--profile", "dist", "--locked", "--bin", "rehearse"], cwd=ROOT, check=True)
    return ROOT / "target" / "dist" / ("rehearse.exe" if os.name == "nt" else "rehearse")
