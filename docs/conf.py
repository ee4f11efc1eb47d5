"""Settings of the documentation site; `make docs` builds it."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts" / "docs"), str(ROOT / "scripts" / "results"), str(ROOT)]

from figures import draw_figures  # noqa: E402
from reference import GENERATED  # noqa: E402

import faithmeter  # noqa: E402

project = "faithmeter"
version = release = faithmeter.__version__
html_title = f"faithmeter {version}"
html_show_copyright = False
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_use_ivar = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 90

myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"


DRAWN = "figures-of-the-build"
"""Folder beside the doctrees with the figures that this build has drawn."""


def draw(app: Sphinx) -> None:
    """Draw the figures from the committed results."""
    draw_figures(app.doctreedir / DRAWN)


def fill_generated(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace `<!-- generated: NAME -->` by Markdown from the code, and figures by those of this build."""
    source[0] = re.sub(r"^<!-- generated: ([\w-]+) -->$", _generate, source[0], flags=re.MULTILINE)
    source[0] = re.sub(r"(?<=\]\()(figures|bench)/[\w-]+\.svg", partial(_locate, app), source[0])


def _generate(match: re.Match[str]) -> str:
    return GENERATED[match[1]]()


def _locate(app: Sphinx, match: re.Match[str]) -> str:
    """Return the path of this build's figure; of a figure that it does not draw, that of the repository."""
    drawn = app.doctreedir / DRAWN / match[0]
    return os.path.relpath(drawn, app.srcdir) if drawn.exists() else match[0]


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", draw)
    app.connect("source-read", fill_generated)
