"""The npm packages: `mcp-rehearsal`, and one with the program for each target."""

import json
from pathlib import Path

from .archive import Entry, write_tar
from .project import LICENSES
from .target import TARGETS


def write_main_package(folder, project):
    """Returns the path of the package."""
    source = project.root / "npm" / "mcp-rehearsal"
    description = json.loads((source / "package.json").read_text("utf-8"))
    programs = set(description["bin"].values())
    files = sorted(path for path in source.iterdir() if path.is_file() and path.name != "package.json")
    entries = [Entry(path.name, path.read_bytes(), path.name in programs) for path in files]
    packages = {_name(target): project.version for target in TARGETS}
    return _write(folder, project, description | {"optionalDependencies": packages}, entries)


def write_platform_package(folder, project, target, binary):
    """Returns the path of the package."""
    system, processor = target.npm.split("-")
    description = {
        "name": _name(target),
        "description": f"rehearse for {target.npm}",
        "os": [system],
        "cpu": [processor],
        "preferUnplugged": True,
    }
    readme = f"The program of `mcp-rehearsal` for {target.npm}. Install `mcp-rehearsal` instead.\n"
    program = Entry(target.program, Path(binary).read_bytes(), is_program=True)
    return _write(folder, project, description, [Entry("README.md", readme.encode()), program])


def _name(target):
    return f"@mcp-rehearsal/{target.npm}"


def _write(folder, project, description, entries):
    common = {
        "version": project.version,
        "license": project.license,
        "repository": {"type": "git", "url": f"git+{project.repository}.git"},
    }
    text = json.dumps(description | common, indent=2) + "\n"
    licenses = [Entry(name, (project.root / name).read_bytes()) for name in LICENSES]
    entries = [Entry("package.json", text.encode()), *entries, *licenses]
    name = description["name"].replace("@", "").replace("/", "-")
    entries = [Entry(f"package/{it.name}", it.data, it.is_program) for it in entries]
    return write_tar(folder / f"{name}-{project.version}.tgz", entries, project.time())
