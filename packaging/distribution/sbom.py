"""The bill of materials of the program, in the format of CycloneDX 1.6: https://cyclonedx.org/docs/1.6/json/"""

import json
import os
import re
import subprocess
import tomllib
import uuid
from datetime import datetime, timezone

from .target import TARGETS

ITSELF = "mcp-rehearsal"


def write_sbom(folder, project):
    """Returns the path of the file, which has what the program is linked of, on any target."""
    packages, needed = _packages(project)
    text = json.dumps(_bill(project, packages, needed), indent=2, ensure_ascii=False) + "\n"
    path = folder / f"rehearse-{project.version}.cdx.json"
    path.write_text(text, "utf-8")
    return path


def _packages(project):
    """The packages that the program consists of, by id, and the ids of those that each one needs."""
    platforms = [word for target in TARGETS for word in ("--filter-platform", target.name)]
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked", *platforms]
    metadata = json.loads(subprocess.check_output(command, cwd=project.root))
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    needed, waiting = {}, [package["id"] for package in packages.values() if package["name"] == ITSELF]
    while waiting:
        it = waiting.pop()
        if it not in needed:
            # What only builds or tests a package is not in the program.
            linked = [dep for dep in nodes[it]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            needed[it] = sorted(dep["pkg"] for dep in linked)
            waiting += needed[it]
    return {it: packages[it] for it in sorted(needed)}, needed


def _bill(project, packages, needed):
    lock = tomllib.loads((project.root / "Cargo.lock").read_text("utf-8"))["package"]
    checksums = {(it["name"], it["version"]): it["checksum"] for it in lock if "checksum" in it}
    components = {it: _component(package, checksums) for it, package in packages.items()}
    reference = lambda it: components[it]["bom-ref"]
    itself = next(it for it, package in packages.items() if package["name"] == ITSELF)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, project.downloads).urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(project.time(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": components[itself] | {"type": "application"},
        },
        "components": [component for it, component in components.items() if it != itself],
        "dependencies": [{"ref": reference(it), "dependsOn": [reference(on) for on in needed[it]]} for it in components],
    }


def _component(package, checksums):
    name, version = package["name"], package["version"]
    url = f"pkg:cargo/{name}@{version}"
    component = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    if package["license"]:
        component["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
    if (name, version) in checksums:
        component["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    if package["repository"]:
        component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return component
