"""tools: what a session in this place offers."""

import os
from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, note, table
from handrail.protocol.tool import ToolSpec, anthropic_tool, describe, openai_tool
from handrail.protocol.wire import encode
from handrail.rail import offered
from handrail.settings import load


def run(options: Namespace) -> int:
    """Lists the tools, for people or in one of three JSON forms."""
    loaded = load(os.environ, {})
    if not options.quiet:
        for text in loaded.notes:
            note(text)
    specs = [tool.spec for tool in offered(loaded.settings).tools]
    if options.json:
        answer_json(encode([describe(spec) for spec in specs]))
    elif options.openai:
        answer_json(encode([openai_tool(spec) for spec in specs]))
    elif options.anthropic:
        answer_json(encode([anthropic_tool(spec) for spec in specs]))
    else:
        answer(table([("tool", "version", "permissions", "description"), *map(_row, specs)]))
    return OK


def _row(spec: ToolSpec) -> tuple[str, str, str, str]:
    first_sentence = spec.description.split(". ")[0].rstrip(".")
    return spec.name, spec.version, " ".join(spec.permissions) or "–", first_sentence
