"""Draw the terminal output of a command as SVG.

python scripts/pictures/terminal.py docs/explain.svg explain CHECKPOINT "a text"
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ |= {"COLUMNS": "100", "COLORTERM": "truecolor", "FORCE_COLOR": "1"}

from faithmeter import cli
from faithmeter.cli import screen


def main() -> None:
    target, *command = sys.argv[1:]
    screen.output.record = True
    sys.argv = ["faithmeter", *command]
    try:
        cli.main()
    finally:
        svg = screen.output.export_svg(title="faithmeter " + command[0])
        # the fonts of the viewer, not of some server
        Path(target).write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
