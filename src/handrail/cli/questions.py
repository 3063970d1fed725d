"""What models ask, as the words of a command mean it."""

from argparse import Namespace

from handrail.cli.exits import FAILED, Stop
from handrail.cli.inbox import here_of
from handrail.cli.output import cut, one_line
from handrail.cli.sessions import state_of_here
from handrail.protocol.question import Question
from handrail.store.inbox import Asked, Inbox
from handrail.store.short_ids import matching, short_ids


def found_question(options: Namespace) -> Asked:
    """The question that an id means, of any workspace. Those of this workspace are known without a note of it."""
    here = here_of(options)
    near = Inbox(state_of_here(), here).questions() if here is not None else []
    asked = {one.question.tool_call_id: one for one in (*Inbox(state_of_here(), None).questions(), *near)}
    ids = matching(options.id, asked)
    if len(ids) == 1:
        return asked[ids[0]]
    spelled = repr(cut(options.id, 80))
    if ids:
        names = ", ".join(f"{name} ({cut(one_line(asked[one].question.question), 40)})" for one, name in named(ids))
        raise Stop(f"{spelled} could be {names}. Nothing was done. Say more of the id.")
    raise Stop(f"no question waits under {spelled}. Nothing was done. handrail approvals lists what does.", FAILED)


def named(ids: list[str]) -> list[tuple[str, str]]:
    """Ids with their short ones."""
    return list(short_ids(ids).items())


def question_text(question: Question) -> str:
    """A question with its options, each with the number that chooses it."""
    rows = [f"  {number}  {one_line(option)}" for number, option in enumerate(question.options, start=1)]
    return "\n".join((question.question.rstrip(), *rows, ""))


def how_to_reply(question: Question) -> str:
    """What to type."""
    said = "1" if question.options else "'TEXT'"
    more = " (or in your own words)" if question.options and question.custom else ""
    return f"to reply: handrail approvals reply {question.tool_call_id} {said}{more}"
