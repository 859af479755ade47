#!/usr/bin/env python3
"""Writes what checks may cite: the pages and sections in crates/conformance/checks/pages.txt, and in types.txt there the
types of the versions whose schema has no page.

    official/pages.py SPECIFICATION [EXTENSION...]

SPECIFICATION and EXTENSION are local clones of modelcontextprotocol/modelcontextprotocol, ext-apps and ext-skills. A clone is
known by the name of its folder, except the first. The lines of an extension that is not given stay as they are.
"""

import re
import subprocess
import sys
from pathlib import Path

CHECKS = Path(__file__).parent.parent / "crates/conformance/checks"
LIST = CHECKS / "pages.txt"
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
SITE = "https://modelcontextprotocol.io"
GITHUB = "https://github.com/modelcontextprotocol"
EXTENSIONS = {"ext-apps": "specification/2026-01-26/apps.mdx", "ext-skills": "specification/stable/skills.mdx"}
OTHERS = [
    "seps/2663-tasks-extension",
    "docs/2025-11-25/tutorials/security/security_best_practices",
    "docs/2026-07-28/tutorials/security/security_best_practices",
]
HEAD = """\
# The pages and sections that checks may cite, and which keywords of RFC 2119 each has: MUST (or MUST NOT, SHALL, REQUIRED)
# and SHOULD (or SHOULD NOT, RECOMMENDED). official/pages.py writes this list.
"""
FENCE = re.compile(r"\s*(```+|~~~+)")


def slug(heading, of_github):
    """The anchor of a heading, as the site or GitHub makes it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("\\", "").lower().strip()
    if of_github:
        return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"['’.()]", "", text)).strip("-")


def keywords(text):
    """The keywords, except those that are only quoted."""
    text = re.sub(r'"[A-Z ]+"', "", text)
    found = [("MUST", r"MUST|SHALL|(?<!NOT )REQUIRED"), ("SHOULD", r"SHOULD|RECOMMENDED")]
    return "".join(f" {keyword}" for keyword, pattern in found if re.search(f"(?<![A-Z])({pattern})(?![A-Z])", text))


def sections(text, of_github=False):
    """The anchors of a page with the keywords between each heading and the next one that is not below it; first, without an
    anchor, what stands before all headings."""
    lines = text.splitlines()
    headings, fence = [], None
    for at, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark[1] if fence is None else None
        elif fence is None and (heading := re.match(r"(#{1,6}) (.+)", line)):
            headings.append((at, len(heading[1]), heading[2]))
    seen = {}
    yield "", keywords("\n".join(lines[: headings[0][0] if headings else len(lines)]))
    for index, (at, depth, heading) in enumerate(headings):
        end = next((at for at, other, _ in headings[index + 1 :] if other <= depth), len(lines))
        anchor = slug(heading, of_github)
        seen[anchor] = seen.get(anchor, 0) + 1
        if seen[anchor] > 1:
            anchor += f"-{seen[anchor] - of_github}"
        yield f"#{anchor}", keywords("\n".join(lines[at:end]))


def specification(clone):
    for version in VERSIONS:
        folder = clone / "docs/specification" / version
        for path in sorted(folder.rglob("*.mdx")):
            page = path.relative_to(folder).with_suffix("").as_posix()
            page = page.removesuffix("/index").removesuffix("index")
            if page:
                yield from (f"{version} {page}{anchor}{words}" for anchor, words in sections(path.read_text()))
    for page in OTHERS:
        text = (clone / "docs" / f"{page}.mdx").read_text()
        yield from (f"{SITE}/{page}{anchor}{words}" for anchor, words in sections(text))


def types(clone):
    """Where the types of the versions are whose schema has no page: a line in schema.ts."""
    yield f"{GITHUB}/modelcontextprotocol/blob/{commit(clone)}/schema"
    for version in VERSIONS:
        if not (clone / f"docs/specification/{version}/schema.mdx").exists():
            for at, line in enumerate((clone / f"schema/{version}/schema.ts").read_text().splitlines(), 1):
                if name := re.match(r"export (?:interface|type) (\w+)", line):
                    yield f"{version} schema#{name[1].lower()} {at}"


def address(extension):
    return f"{GITHUB}/{extension}/blob/main/{EXTENSIONS[extension]}"


def commit(clone):
    return subprocess.check_output(["git", "-C", str(clone), "rev-parse", "HEAD"], text=True).strip()


def main(clone, *extensions):
    old = LIST.read_text().splitlines() if LIST.exists() else []
    lines = [f"# modelcontextprotocol {commit(clone)}", *specification(Path(clone))]
    given = {Path(path).name: Path(path) for path in extensions}
    for name, page in EXTENSIONS.items():
        if name in given:
            lines.append(f"# {name} {commit(given[name])}")
            found = sections((given[name] / page).read_text(), of_github=True)
            lines += [f"{address(name)}{anchor}{words}" for anchor, words in found]
        else:
            lines += [line for line in old if line.startswith((address(name), f"# {name} "))]
    (CHECKS / "types.txt").write_text("\n".join(types(Path(clone))) + "\n")
    LIST.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
