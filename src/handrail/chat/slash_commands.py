"""The slash commands of a session."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from handrail.protocol.decisions import MODES
from handrail.protocol.errors import HandrailError, ToolError, UsageError
from handrail.protocol.text import find_similar, to_one_line, truncate

if TYPE_CHECKING:
    from handrail.chat.session import ChatSession
    from handrail.chat.work import SessionWork

COMMANDS = {
    "undo": "undo the last change, a change by its number, or the whole turn",
    "diff": "show the last change, a change by its number, or the whole turn",
    "rewind": "go back to an earlier prompt: files, conversation or both",
    "log": "show the transcript of this session; changes: its changes",
    "ps": "list background processes; log ID, stop ID, remove ID",
    "approvals": "list requests and grants; revoke ID",
    "policy": "explain a decision: explain COMMAND; list modes: modes",
    "mode": "show or choose the mode: plan, ask, auto",
    "model": "show or choose the model",
    "skills": "list skills",
    "resume": "continue another session",
    "continue": "resume a turn that waits",
    "fork": "continue in a copy of this session",
    "compact": "replace older messages by a summary",
    "doctor": "check the installation",
    "help": "show the keys and commands",
    "quit": "leave the session",
}
"""Each command with a line of help."""
_KEYS = (
    ("enter", "send; while the model works: queue; once more: send now"),
    ("alt+enter, ctrl+j", "new line"),
    ("esc", "stop the turn; twice: rewind"),
    ("ctrl+c", "clear the text; twice: leave"),
    ("shift+tab", "mode: plan, ask, auto"),
    ("ctrl+o", "every call with its output and diff"),
    ("ctrl+r", "search earlier prompts"),
    ("ctrl+g", "edit the text in $EDITOR"),
    ("ctrl+v", "attach the picture in the clipboard"),
    ("ctrl+z", "suspend"),
    ("@", "name a file"),
    ("!", "run a command yourself, with the same undo"),
    ("/", "commands:"),
)
HELP = "\n".join(
    [f"  {keys:<18} {text}" for keys, text in _KEYS] + [f"    /{name:<15} {text}" for name, text in COMMANDS.items()]
)
_PROCESS_ACTIONS, _APPROVAL_ACTIONS, _POLICY_ACTIONS = (
    {"log", "stop", "remove"},
    {"revoke", "show"},
    {"explain", "modes"},
)
_MAX_WORDS = 20


async def run_command(chat: "SessionWork", text: str) -> None:
    """Runs a slash command."""
    name, _, argument = text[1:].partition(" ")
    try:
        await _HANDLERS[name](chat, argument.strip())
    except (HandrailError, ToolError) as error:
        chat.report(error, "/log changes" if name in {"diff", "undo"} else "/help")


def is_command_like(text: str) -> bool:
    """Whether a text can only be a misspelt command: one word behind a slash, or one that is like a command."""
    word, _, more = text[1:].partition(" ")
    return (
        text.startswith("/") and word.isascii() and word.isalpha() and (not more or bool(find_similar(word, COMMANDS)))
    )


def describe_unknown(text: str) -> tuple[str, str]:
    """The error about a misspelt command, and the command that was probably meant."""
    word = text[1:].partition(" ")[0]
    return f"There is no command /{word[:40]}. Nothing was done.", f"/{find_similar(word, COMMANDS) or 'help'}"


async def show_transcript(chat: "SessionWork") -> None:
    """Shows every call with its output and its diff, the latest first."""
    from handrail.chat.viewer import build_card_pages  # noqa: PLC0415  loaded with the session

    cards = [*chat.view.cards]
    if not cards:
        chat.say("No call has run here yet.")
        return
    await chat.read_pages(build_card_pages(cards[::-1], chat.glyphs.paint))


async def rewind(chat: "SessionWork", _: str) -> None:
    """Lets the person choose a prompt and a scope, shows the diff, and goes back after a yes."""
    from handrail.chat import rewind as rewinds  # noqa: PLC0415  loaded with the session
    from handrail.chat.viewer import build_diff_pages, build_text_page  # noqa: PLC0415

    session = _require_idle(chat)
    prompts = await session.list_prompts()
    if not prompts:
        chat.say("There is no prompt to go back to.")
        return
    async with chat.hold_screen():
        rows = [rewinds.describe_prompt(prompt) for prompt in prompts]
        chosen = await chat.choose("Go back to before which prompt?", rows)
        if chosen is None:
            return
        plan = await rewinds.plan_rewind(session.rail, prompts, chosen)
        if plan.diff:
            end = build_text_page("next", ["Undo would make this change. q closes the diff."])
            await chat.read_pages([*build_diff_pages(plan.diff, chat.glyphs.paint), end])
        scope = await chat.choose("Restore files, conversation or both? (q cancels)", rewinds.describe_scopes(plan))
    if scope is None:
        chat.say("Nothing was changed.")
        return
    name = rewinds.SCOPES[scope]
    if name != "conversation" and not await rewinds.rewind_files(session.rail, plan):
        return
    if name != "files":
        await chat.switch(await rewinds.rewind_conversation(session, plan))
        chat.put_prompt(plan.prompt.text)


async def _undo(chat: "SessionWork", argument: str) -> None:
    await _require_idle(chat).rail.undo(_parse_number(argument), turn=argument == "turn")  # the view shows its result


async def _diff(chat: "SessionWork", argument: str) -> None:
    from handrail.chat.viewer import build_diff_pages  # noqa: PLC0415  loaded with the session

    diff = await _require(chat).rail.stored_diff(_parse_number(argument), turn=argument == "turn")
    pages = build_diff_pages(diff.text, chat.glyphs.paint)
    if not pages:
        chat.say("This change has no diff.")
        return
    await chat.read_pages(pages)


async def _log(chat: "SessionWork", argument: str) -> None:
    which = [f"--{word}" for word in _split(argument, {"changes"})]
    await chat.show_command("log", "--session", _require(chat).rail.session_id, *which)


async def _ps(chat: "SessionWork", argument: str) -> None:
    words = _split(argument, _PROCESS_ACTIONS)
    await chat.show_command("processes", *words)


async def _approvals(chat: "SessionWork", argument: str) -> None:
    await chat.show_command("approvals", *_split(argument, _APPROVAL_ACTIONS))


async def _policy(chat: "SessionWork", argument: str) -> None:
    words = _split(argument or "modes", _POLICY_ACTIONS, most=2)
    mode = ("--mode", _require(chat).mode, "--") if words[0] == "explain" else ()
    await chat.show_command("policy", words[0], *mode, *words[1:])


async def _mode(chat: "SessionWork", argument: str) -> None:
    session = _require(chat)
    if argument == "full" and session.mode != "full":
        problem = "full mode needs the flag --mode full or the user file. The mode was not changed."
        raise UsageError(problem, then="handrail chat -c --mode full")
    if argument and argument not in MODES:
        raise UsageError(f"there is no mode {argument[:40]}. The mode was not changed.", then="/mode ask")
    if argument:
        await session.rail.set_mode(argument)
    chat.say(f"mode {session.mode}")


async def _model(chat: "SessionWork", argument: str) -> None:
    session = _require(chat)
    if argument:
        _require_idle(chat)
        await session.choose_model(chat.host.open_model(argument))
    chat.say(f"model {to_one_line(session.model.name)}")


async def _skills(chat: "SessionWork", _: str) -> None:
    await chat.show_command("skills")


async def _resume(chat: "SessionWork", argument: str) -> None:
    session = _require_idle(chat)
    others = [one for one in chat.host.list_sessions() if one[0] != session.rail.session_id]
    if argument:
        others = [one for one in others if one[0].startswith(argument)]
    if not others:
        chat.say("This workspace has no other session." if not argument else "This workspace has no such session.")
        return
    chosen: int | None = 0
    if not argument or len(others) > 1:
        rows = [f"{name:<14} {truncate(to_one_line(prompt), 200)}" for name, prompt in others]
        chosen = await chat.choose("Continue which session?", rows)
    if chosen is not None:
        await chat.switch(others[chosen][0])


async def _continue(chat: "SessionWork", _: str) -> None:
    _require_idle(chat)
    await chat.go_on()


async def _fork(chat: "SessionWork", _: str) -> None:
    session = _require_idle(chat)
    before = session.rail.session_id
    await chat.switch(await session.rail.fork_session())
    chat.say(f"This is a copy of session {before}, which stays as it is.")


async def _compact(chat: "SessionWork", _: str) -> None:
    shorter = await _require_idle(chat).agent.compact()
    if not shorter:
        chat.say("The conversation is too short to be summarized. Nothing was changed.")


async def _doctor(chat: "SessionWork", _: str) -> None:
    await chat.show_command("doctor")


async def _help(chat: "SessionWork", _: str) -> None:
    chat.say(HELP)


async def _quit(chat: "SessionWork", _: str) -> None:
    chat.leave()


_HANDLERS: dict[str, Callable[["SessionWork", str], Awaitable[Any]]] = {
    "undo": _undo,
    "diff": _diff,
    "rewind": rewind,
    "log": _log,
    "ps": _ps,
    "approvals": _approvals,
    "policy": _policy,
    "mode": _mode,
    "model": _model,
    "skills": _skills,
    "resume": _resume,
    "continue": _continue,
    "fork": _fork,
    "compact": _compact,
    "doctor": _doctor,
    "help": _help,
    "quit": _quit,
}


def _require(chat: "SessionWork") -> "ChatSession":
    if chat.session is None:
        raise UsageError("the session is still being opened. Nothing was done.", then="try again in a moment")
    return chat.session


def _require_idle(chat: "SessionWork") -> "ChatSession":
    """The session, if no turn runs that the command would interfere with."""
    if chat.is_working:
        raise UsageError("the model is working. Nothing was done.", then="esc, which stops the model")
    return _require(chat)


def _parse_number(argument: str) -> int | None:
    if argument in {"", "turn"}:
        return None
    if not (argument.isascii() and argument.isdigit() and len(argument) < 12):
        raise UsageError(f"a change has a number, not {argument[:40]!r}. Nothing was done.")
    return int(argument)


def _split(argument: str, actions: set[str], most: int = _MAX_WORDS) -> list[str]:
    """The words of an argument, the first of which is an action."""
    words = argument.split(maxsplit=most - 1)
    if words and words[0] not in actions:
        raise UsageError(f"{words[0][:40]!r} is unknown here. Use {', '.join(sorted(actions))}.")
    return words
