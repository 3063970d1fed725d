"""approvals deny: a no, with the reason that the model reads."""

from argparse import Namespace

from handrail.cli.answering import answer_request
from handrail.cli.inbox import resolve_request
from handrail.protocol.permissions import Answer


def run(options: Namespace) -> int:
    """Answers no; what else was in the batch runs, where nothing more of it waits."""
    return answer_request(options, resolve_request(options), Answer(kind="deny", reason=options.reason or None))
