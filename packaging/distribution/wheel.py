"""The wheel: the Python package with the program for one target.

https://packaging.python.org/en/latest/specifications/binary-distribution-format/ and
https://packaging.python.org/en/latest/specifications/core-metadata/
"""

import base64
import hashlib
import tomllib
from pathlib import Path

from .archive import Entry, write_zip
from .project import LICENSES


def write_wheel(folder, project, target, binary, platform=None):
    """Returns the path of the wheel. `platform` is the tag of the systems that it runs on, by default that of the target."""
    platform = platform or target.wheel
    stem = f"mcp_rehearsal-{project.version}"
    info = f"{stem}.dist-info"
    source = project.root / "python"
    pyproject = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    modules = sorted(path for path in (source / "src" / "mcp_rehearsal").iterdir() if path.is_file())
    entries = [
        *(Entry(f"mcp_rehearsal/{path.name}", path.read_bytes()) for path in modules),
        Entry(f"{stem}.data/scripts/{target.program}", Path(binary).read_bytes(), is_program=True),
        Entry(f"{info}/METADATA", _metadata(project, pyproject, source).encode()),
        Entry(f"{info}/WHEEL", _tags(platform).encode()),
        Entry(f"{info}/entry_points.txt", _entry_points(pyproject).encode()),
        *(Entry(f"{info}/licenses/{name}", (project.root / name).read_bytes()) for name in LICENSES),
    ]
    record = Entry(f"{info}/RECORD", _record(entries, f"{info}/RECORD").encode())
    return write_zip(folder / f"{stem}-py3-none-{platform}.whl", [*entries, record], project.time())


def _metadata(project, pyproject, source):
    extras = pyproject["optional-dependencies"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {pyproject['name']}",
        f"Version: {project.version}",
        f"Summary: {pyproject['description']}",
        f"Keywords: {','.join(pyproject['keywords'])}",
        f"License-Expression: {pyproject['license']}",
        *(f"License-File: {name}" for name in LICENSES),
        *(f"Classifier: {it}" for it in pyproject["classifiers"]),
        f"Requires-Python: {pyproject['requires-python']}",
        *(f"Provides-Extra: {extra}" for extra in extras),
        *(f"Requires-Dist: {it} ; extra == '{extra}'" for extra, needed in extras.items() for it in needed),
        f"Project-URL: Source, {project.repository}",
        "Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM",
    ]
    return "\n".join(lines) + "\n\n" + (source / pyproject["readme"]).read_text("utf-8")


def _tags(platform):
    tags = "".join(f"Tag: py3-none-{it}\n" for it in platform.split("."))
    return f"Wheel-Version: 1.0\nGenerator: mcp-rehearsal\nRoot-Is-Purelib: false\n{tags}"


def _entry_points(pyproject):
    groups = {"console_scripts": pyproject["scripts"], **pyproject["entry-points"]}
    sections = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]) for group, points in groups.items()
    ]
    return "\n\n".join(sections) + "\n"


def _record(entries, itself):
    lines = []
    for entry in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.data).digest()).decode().rstrip("=")
        lines.append(f"{entry.name},sha256={digest},{len(entry.data)}")
    return "\n".join([*lines, f"{itself},,"]) + "\n"
