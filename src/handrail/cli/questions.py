"""What models ask, as the words of a command mean it."""

from argparse import Namespace

from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.inbox import find_current_workspace
from handrail.cli.sessions import open_state_folder
from handrail.protocol.permissions import InboxQuestion, Question
from handrail.protocol.records import list_matching_ids, shorten_ids
from handrail.protocol.text import quote_text, to_one_line, truncate


def resolve_question(options: Namespace) -> InboxQuestion:
    """The question that an id means, of any workspace. Those of this workspace are known without a note of it."""
    here = find_current_workspace(options)
    near = open_state_folder().open_inbox(here).list_questions() if here is not None else []
    asked = {one.question.tool_call_id: one for one in (*open_state_folder().open_inbox(None).list_questions(), *near)}
    ids = list_matching_ids(options.id, asked)
    if len(ids) == 1:
        return asked[ids[0]]
    spelled = quote_text(options.id)
    if ids:
        names = ", ".join(
            f"{name} ({truncate(to_one_line(asked[one].question.question), 40)})" for one, name in list_short_ids(ids)
        )
        raise CommandFailed(f"{spelled} could be {names}. Nothing was done. Say more of the id.")
    raise CommandFailed(
        f"no question waits under {spelled}. Nothing was done. handrail approvals lists what does.", FAILED
    )


def list_short_ids(ids: list[str]) -> list[tuple[str, str]]:
    """Ids with their short ones."""
    return list(shorten_ids(ids).items())


def render_question(question: Question) -> str:
    """A question with its options, each with the number that chooses it."""
    rows = [f"  {number}  {to_one_line(option)}" for number, option in enumerate(question.options, start=1)]
    return "\n".join((question.question.rstrip(), *rows, ""))


def describe_reply_command(question: Question) -> str:
    """What to type."""
    said = "1" if question.options else "'TEXT'"
    more = " (or in your own words)" if question.options and question.custom else ""
    return f"to reply: handrail approvals reply {question.tool_call_id} {said}{more}"
