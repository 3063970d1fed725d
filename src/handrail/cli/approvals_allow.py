"""approvals allow: a yes, and what came of it."""

from argparse import Namespace

from handrail.cli.answering import answer_request
from handrail.cli.inbox import resolve_request
from handrail.protocol.permissions import Answer, AnswerKind


def run(options: Namespace) -> int:
    """Answers yes, and runs what waited for it. What was answered already and not run is run."""
    waiting = resolve_request(options)
    kind: AnswerKind = "output" if options.output_only else options.scope
    return answer_request(options, waiting, waiting.answer or Answer(kind=kind))
