"""doctor: whether everything handrail needs is here."""

import sys
from argparse import Namespace
from itertools import groupby

from handrail.cli.checks import CHECKS
from handrail.cli.exits import FAILED, OK
from handrail.cli.format import Finding
from handrail.cli.output import can_show, print_json, print_out
from handrail.protocol.text import to_one_line
from handrail.protocol.version import VERSION
from handrail.protocol.wire import encode

_SIGNS = {"ok": "✓", "warning": "⚠", "error": "✗"}
_WORDS = {"ok": "ok   ", "warning": "warn ", "error": "ERROR"}


def run(options: Namespace) -> int:
    """Makes every check and prints a row for each."""
    rows = [row for check in CHECKS for row in check()]
    failed = any(row.status == "error" for row in rows)
    if options.json:
        body = {"schema": "handrail.doctor/1", "ok": not failed, "version": VERSION, "platform": sys.platform}
        print_json(encode({**body, "rows": [row._asdict() for row in rows]}))
    else:
        print_out("".join(_lines(rows)))
    return FAILED if failed else OK


def _lines(rows: list[Finding]) -> list[str]:
    signs, arrow = (_SIGNS, "→") if can_show("✓⚠✗→") else (_WORDS, "->")
    lines: list[str] = []
    for group, members in groupby(rows, lambda row: row.group):
        lines.append(f"{group}\n")
        for row in members:
            lines.append(f"  {signs[row.status]} {to_one_line(row.text)}\n")
            if row.fix:
                lines.append(f"      {arrow} {to_one_line(row.fix)}\n")
    return lines
