"""What Cargo.toml and CHANGELOG.md say about the project."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EARLIEST_IN_A_ZIP = 315_532_800
LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"]


class Project:
    """The project in a folder."""

    def __init__(self, root=ROOT):
        self.root = root
        cargo = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
        workspace = cargo["workspace"]["package"]
        self.version, self.license = workspace["version"], workspace["license"]
        self.description = cargo["package"]["description"]
        self.repository = workspace.get("repository")
        if not self.repository:
            sys.exit("error: Cargo.toml has no repository\nhint: add it to [workspace.package]")

    @property
    def downloads(self):
        """Where the archives of this version are."""
        return f"{self.repository}/releases/download/v{self.version}"

    def time(self):
        """The time of all files of a release, in seconds: SOURCE_DATE_EPOCH, or when the commit was made."""
        command = ["git", "-C", self.root, "log", "-1", "--format=%ct"]
        named = os.environ.get("SOURCE_DATE_EPOCH")
        return int(named or subprocess.run(command, capture_output=True).stdout or EARLIEST_IN_A_ZIP)

    def notes(self, version):
        """The section about a version in CHANGELOG.md, without its title; None if there is none."""
        text = (self.root / "CHANGELOG.md").read_text("utf-8")
        section = re.search(rf"(?ms)^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |^\[[^\]\n]+\]: |\Z)", text)
        return section and section[1].strip() + "\n"
