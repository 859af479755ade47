"""What package managers read: the Homebrew formula, the winget manifests, the scoop manifest.

Each function returns the texts of its files by their names, for the archives of a release: their checksums by target.
"""

import json

from .archive import archive_name

BLOCKS = {"darwin": "on_macos", "linux": "on_linux"}
PROCESSORS = {"aarch64": "on_arm", "x86_64": "on_intel"}
WINGET_VERSION = "1.10.0"
FORMULA = """\
class Rehearse < Formula
  desc "Mock servers, tests and config checks for the Model Context Protocol"
  homepage "{repository}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]

{archives}
  def install
    bin.install "rehearse"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/rehearse.bash" => "rehearse"
    fish_completion.install "completions/rehearse.fish"
    zsh_completion.install "completions/_rehearse"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/rehearse --version")
    assert_match "basic", shell_output("#{{bin}}/rehearse mock --list")
  end
end
"""


def formula(project, checksums):
    """https://docs.brew.sh/Formula-Cookbook"""
    archives = ""
    for system, block in BLOCKS.items():
        branches = ""
        for processor, branch in PROCESSORS.items():
            for target in (it for it in checksums if system in it.name and it.name.startswith(processor)):
                url = f"{project.downloads}/{archive_name(project, target)}.tar.gz"
                branches += f'    {branch} do\n      url "{url}"\n      sha256 "{checksums[target]}"\n    end\n'
        archives += f"  {block} do\n{branches}  end\n\n" if branches else ""
    text = FORMULA.format(repository=project.repository, version=project.version, archives=archives.rstrip("\n") + "\n")
    return {"rehearse.rb": text}


def winget(project, checksums):
    """https://learn.microsoft.com/windows/package-manager/package/manifest"""
    name = "McpRehearsal.Rehearse"
    manifests = {
        "version": {"DefaultLocale": "en-US"},
        "installer": {
            "InstallerType": "zip",
            "NestedInstallerType": "portable",
            "Installers": [_winget_installer(project, target, checksum) for target, checksum in _of_windows(checksums)],
        },
        "defaultLocale": {
            "PackageLocale": "en-US",
            "Publisher": "mcp-rehearsal",
            "PublisherUrl": project.repository,
            "PackageName": "rehearse",
            "PackageUrl": project.repository,
            "License": project.license,
            "ShortDescription": project.description,
            "Moniker": "rehearse",
            "Tags": ["mcp", "model-context-protocol", "mock", "testing"],
            "ReleaseNotesUrl": f"{project.repository}/releases/tag/v{project.version}",
        },
    }
    files = {"version": name, "installer": f"{name}.installer", "defaultLocale": f"{name}.locale.en-US"}
    texts = {}
    for kind, fields in manifests.items():
        schema = f"https://aka.ms/winget-manifest.{kind}.{WINGET_VERSION}.schema.json"
        common = {"PackageIdentifier": name, "PackageVersion": project.version}
        manifest = common | fields | {"ManifestType": kind, "ManifestVersion": WINGET_VERSION}
        texts[f"{files[kind]}.yaml"] = f"# yaml-language-server: $schema={schema}\n" + "\n".join(_yaml(manifest)) + "\n"
    return texts


def _winget_installer(project, target, checksum):
    program = rf"{archive_name(project, target)}\{target.program}"
    return {
        "Architecture": "x64",
        "InstallerUrl": f"{project.downloads}/{archive_name(project, target)}.zip",
        "InstallerSha256": checksum.upper(),
        "NestedInstallerFiles": [{"RelativeFilePath": program, "PortableCommandAlias": "rehearse"}],
    }


def _yaml(mapping):
    """The lines of a mapping, whose strings are those of JSON."""
    for key, value in mapping.items():
        if not isinstance(value, list):
            yield f"{key}: {json.dumps(value)}"
            continue
        yield f"{key}:"
        for item in value:
            first, *rest = _yaml(item) if isinstance(item, dict) else [json.dumps(item)]
            yield from [f"- {first}", *(f"  {line}" for line in rest)]


def scoop(project, checksums):
    """https://github.com/ScoopInstaller/Scoop/wiki/App-Manifests"""
    ((target, checksum),) = _of_windows(checksums)
    folder = archive_name(project, target)
    places = {"url": f"{project.downloads}/{folder}.zip", "extract_dir": folder}
    newest = {key: text.replace(project.version, "$version") for key, text in places.items()}
    manifest = {
        "version": project.version,
        "description": project.description,
        "homepage": project.repository,
        "license": project.license.replace(" OR ", "|"),
        "architecture": {"64bit": places | {"hash": checksum}},
        "bin": "rehearse.exe",
        "checkver": {"github": project.repository},
        "autoupdate": {"architecture": {"64bit": newest}, "hash": {"url": "$baseurl/SHA256SUMS"}},
    }
    return {"rehearse.json": json.dumps(manifest, indent=4) + "\n"}


def _of_windows(checksums):
    return [(target, checksum) for target, checksum in checksums.items() if target.is_windows]
