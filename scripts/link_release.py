"""Make the links of a release work outside the repository: those of the README, and the project's own.

    python scripts/link_release.py https://github.com/OWNER/NAME v0.2.0

An index shows README.md without the files beside it. So each relative link becomes one to the file at the
tag, and pyproject.toml gets the addresses of the project. Only the release runs this, in its own checkout.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LINK = re.compile(r"(!?)\[((?:[^\[\]]|!?\[[^\]]*\]\([^)]*\))*)\]\((?!\w+:|#)([^)\s]+)\)")
"""Markdown link or picture whose target is neither an address nor a heading of this page."""


def link_readme(text: str, repository: str, tag: str) -> str:
    """Return a README whose relative links lead to the files of a tag; pictures to their contents."""

    def replace(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        kind = "raw" if mark else "blob"
        return f"{mark}[{LINK.sub(replace, label)}]({repository}/{kind}/{tag}/{target})"

    return LINK.sub(replace, text)


def add_urls(project: str, repository: str, tag: str) -> str:
    """Return a pyproject.toml with the addresses of the project, which an index shows beside the README."""
    if "[project.urls]" in project:
        raise SystemExit("pyproject.toml has [project.urls] already; expected none before a release")
    urls = {
        "Repository": repository,
        "Documentation": f"{repository}/tree/{tag}/docs",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return project.replace("[project.scripts]", f"[project.urls]\n{lines}\n[project.scripts]", 1)


def main(repository: str, tag: str) -> None:
    root = Path(__file__).parents[1]
    for name, change in {"README.md": link_readme, "pyproject.toml": add_urls}.items():
        path = root / name
        path.write_text(change(path.read_text(encoding="utf-8"), repository, tag), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
