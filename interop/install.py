"""What npm and pip install, once for each state of the pins."""

import fcntl
import hashlib
import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from processes import Failure

PYTHONS = ("python-1", "python-1.6", "python-1.9", "python-1.15", "python-2", "python-fastmcp-2", "python-fastmcp-3", "python-models")
PINS = ("package.json", "package-lock.json", *(f"{name}.txt" for name in PYTHONS))
CACHE_HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(os.environ.get("INTEROP_CACHE") or CACHE_HOME / "mcp-rehearsal/interop")


def install(processes, home):
    """The folder with what the pins in `home` name; installs it unless an earlier run did."""
    pins = [home / name for name in PINS if (home / name).exists()]
    digest = hashlib.sha256(f"{platform.platform()} {sys.version}".encode())
    for path in pins:
        digest.update(path.read_bytes())
    folder = CACHE / digest.hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "complete").exists():
            return folder
        print(f"Installing the pins of {home.name}/ into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in pins:
            shutil.copy(path, folder)

        def run(*command):
            # With the user's own HOME: the settings of the package managers are there.
            code, out, err = processes.run([str(part) for part in command], {"HOME": str(Path.home())}, cwd=folder)
            if code != 0:
                raise Failure(f"{' '.join(map(str, command))} ended with {code}\n{out}{err}")

        def python(generation):
            run(sys.executable, "-m", "venv", generation)
            pip = [folder / generation / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            run(*pip, "--no-deps", "-r", f"{generation}.txt")

        def npm():
            run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")

        # Not waited for by `with`: an interruption ends the processes, and those the threads.
        pool = ThreadPoolExecutor(3)
        jobs = [pool.submit(npm), *(pool.submit(python, path.stem) for path in pins if path.suffix == ".txt")]
        for job in jobs:
            job.result()
        (folder / "complete").touch()
    return folder


def node(folder):
    """The Node of an installation; where npm brought none for this platform, the machine's."""
    bundled = sorted((folder / "node_modules").glob("node-*/bin/node"))
    return str(bundled[0]) if bundled else "node"
