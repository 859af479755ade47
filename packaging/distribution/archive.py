"""Archives that have the same bytes whenever they are made from the same files."""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .project import LICENSES

SHELLS = {"bash": "rehearse.bash", "fish": "rehearse.fish", "zsh": "_rehearse"}
SHELLS_OF_WINDOWS = {"powershell": "rehearse.ps1"}


@dataclass(frozen=True)
class Entry:
    """A file in an archive."""

    name: str
    data: bytes
    is_program: bool = False

    @property
    def mode(self):
        return 0o755 if self.is_program else 0o644


def write_tar(path, entries, seconds):
    with path.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for entry in entries:
                info = tarfile.TarInfo(entry.name)
                info.size, info.mode, info.mtime = len(entry.data), entry.mode, seconds
                tar.addfile(info, io.BytesIO(entry.data))
    return path


def write_zip(path, entries, seconds):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.name, time.gmtime(seconds)[:6])
            # A regular file; 3 is Unix.
            info.external_attr, info.create_system = (0o100000 | entry.mode) << 16, 3
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.data, compresslevel=9)
    return path


class Pages:
    """The man pages and completions of the program, which writes them itself."""

    def __init__(self, program):
        try:
            self._completions = {
                shell: subprocess.check_output([program, "completions", shell]) for shell in SHELLS | SHELLS_OF_WINDOWS
            }
            with tempfile.TemporaryDirectory() as folder:
                subprocess.check_output([program, "man", folder])
                pages = sorted(Path(folder).iterdir())
                self._pages = [Entry(f"man/{page.name}", page.read_bytes()) for page in pages]
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"error: {program} cannot write its man pages and completions: {error}")

    def entries(self, target):
        shells = SHELLS_OF_WINDOWS if target.is_windows else SHELLS
        completions = [Entry(f"completions/{file}", self._completions[shell]) for shell, file in shells.items()]
        return completions + ([] if target.is_windows else self._pages)


def archive_name(project, target):
    return f"rehearse-{project.version}-{target.name}"


def write_archive(folder, project, target, binary, pages):
    """The archive of a release for one target; returns its path."""
    name = archive_name(project, target)
    texts = [Entry(file, (project.root / file).read_bytes()) for file in ["README.md", *LICENSES]]
    entries = [Entry(target.program, Path(binary).read_bytes(), is_program=True), *texts, *pages.entries(target)]
    entries = [Entry(f"{name}/{it.name}", it.data, it.is_program) for it in entries]
    write, suffix = (write_zip, "zip") if target.is_windows else (write_tar, "tar.gz")
    return write(folder / f"{name}.{suffix}", entries, project.time())


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
