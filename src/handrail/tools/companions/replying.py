"""What a reply to a question may be, and what the model is told of it."""

from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import Question, Reply
from handrail.protocol.text import render_value
from handrail.protocol.wire import escape_surrogates
from handrail.tools.companions.question import QuestionData
from handrail.tools.contract import Output

_MAX_REPLY_CHARS = 20_000
_NO_REPLY = "The person did not answer. Do not ask it again: decide yourself and say what you assumed, or stop here."


def normalize_reply(question: Question, said: Reply | str) -> Reply:
    """The reply as it counts: options in their order, own words without white space around them. UsageError where the
    question cannot be answered so; it says what is possible."""
    given = said if isinstance(said, Reply) else _in_words(question, said)
    text = escape_surrogates(given.text).strip() if given.text else ""
    unknown = [one for one in given.chosen if one not in question.options]
    if unknown:
        raise UsageError(
            f"{render_value(unknown[0])} is no option of the question. {describe_possible_replies(question)}"
        )
    if text and not question.custom:
        raise UsageError(
            f"the question takes no reply in other words: {render_value(text)}. {describe_possible_replies(question)}"
        )
    chosen = tuple(option for option in question.options if option in given.chosen)
    if len(chosen) > 1 and not question.multiple:
        raise UsageError(f"only one option may be chosen, not {len(chosen)}. {describe_possible_replies(question)}")
    if not chosen and not text:
        raise UsageError(f"the reply says nothing. {describe_possible_replies(question)}")
    if len(text) > _MAX_REPLY_CHARS:
        raise UsageError(f"a reply has at most {_MAX_REPLY_CHARS:,} characters; this one has {len(text):,}")
    return Reply(chosen=chosen, text=text or None)


def describe_possible_replies(question: Question) -> str:
    """What may be replied, in words."""
    options = ", ".join(render_value(option) for option in question.options)
    many = "one or more of" if question.multiple else "one of"
    own = "your own words" if question.custom else ""
    return f"Reply with {' or '.join(filter(None, (f'{many} {options}' if options else '', own)))}."


def build_reply_output(question: Question, reply: Reply) -> Output:
    """What the model gets of a reply."""
    chosen = "; ".join(reply.chosen)
    told = [f"The person chose: {chosen}"] if chosen else []
    told += [f"The person {'added' if chosen else 'replied'}: {reply.text}"] if reply.text else []
    # The audit keeps it: it says how, and not what.
    how = [f"{len(reply.chosen)} of {len(question.options)} options"] if chosen else []
    summary = f"replied with {' and '.join(how + (['own words'] if reply.text else []))}"
    data = QuestionData(chosen=reply.chosen, text=reply.text)
    return Output(title=question.question[:200], summary=summary, content="\n".join(told), data=data)


def build_no_reply_error() -> ToolError:
    """The error of a question that the person put aside."""
    return ToolError("CANCELLED", _NO_REPLY)


def _in_words(question: Question, said: str) -> Reply:
    """A text is the option that it spells, in whatever case where that is no other one; else own words."""
    spelled = said.strip()
    alike = [one for one in question.options if one.strip().casefold() == spelled.casefold()]
    exact = [one for one in alike if one.strip() == spelled]
    found = exact or (alike if len(alike) == 1 else [])
    if found:
        return Reply(chosen=tuple(found))
    if question.multiple and (several := _several(question, spelled)):
        return Reply(chosen=several)
    return Reply(text=said)


def _several(question: Question, spelled: str) -> tuple[str, ...]:
    """Options with commas or new lines between them; none where one of the parts is no option."""
    names = {option.strip().casefold(): option for option in question.options}
    for mark in ("\n", ","):
        parts = [part.strip().casefold() for part in spelled.split(mark) if part.strip()]
        if parts and all(part in names for part in parts):
            return tuple(names[part] for part in parts)
    return ()
