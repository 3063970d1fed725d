"""Renders a permission request as text."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from handrail.policy.network.needs import render_host
from handrail.protocol.decisions import DecisionPart
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.text import (
    escape_control,
    escape_exact,
    escape_exact_line,
    list_escaped_chars,
    measure_width,
    pad,
    to_one_line,
    truncate_to_width,
    wrap,
)
from handrail.protocol.tool_spec import format_tool_label
from handrail.terminal.changes_text import (
    AGAIN,
    MAX_FILE_ROWS,
    describe_preview_age,
    format_file_count,
    has_preview_run,
    render_preview_run,
    summarize_changes,
)
from handrail.terminal.homoglyphs import find_look_alikes

# § [terminal.request] A permission request as text: what would be done, why that asks, and what a yes would mean.

MAX_DIFF_LINES = 40
"""Lines of a difference that are shown unasked."""
_NOT_SENT = "Nothing has been sent. Yes sends it for real; what the program does with it cannot be undone."
_NO_SANDBOX = "No sandbox here: it could read and change whatever you can (handrail doctor)."
_GOES_ON = "Goes on after the call; not covered by undo."
_WIDEST_COLUMNS = 200
"""In which parts stand in columns where the width does not matter: every part is padded to the longest."""
_VERDICTS = {"allow": "runs", "confirm": "asks", "deny": "never"}


def render_title(request: PermissionRequest, number: int = 1, of: int = 1) -> str:
    """What is asked about, and which of several questions this is."""
    which = f"Permission {number} of {of}" if of > 1 else "Permission"
    return f"{which} · {to_one_line(format_tool_label(request.tool_name, request.server_name))}"


def render_request(
    request: PermissionRequest,
    *,
    width: int | None,
    diff: int | None = MAX_DIFF_LINES,
    files: int | None = MAX_FILE_ROWS,
    outdated: tuple[str, ...] = (),
    again: str = AGAIN,
    plain: bool = False,
) -> list[str]:
    """All that a person has to know, in rows of at most so many columns; None: as long as they are. Of a difference
    at most `diff` lines, of a list of files at most `files` rows; None: all of it. `outdated`: what
    changed since, and `again` how it is tried again."""
    command = request.command is not None
    tried = (
        render_preview_run(request, width, outdated=outdated, again=again, plain=plain, most=files) if command else ()
    )
    return [
        *_what(request, width),
        *_reasons(request, width),
        *(row for line in (*_place(request), *tried, *_remarks(request)) for row in wrap(line, width, "  ")),
        *_preview_lines(request, width, diff),
    ]


def count_hidden_lines(request: PermissionRequest) -> int:
    """How many lines of the difference are not shown unasked."""
    if request.preview is None or request.preview.kind != "diff":
        return 0
    return max(0, request.preview.text.rstrip("\n").count("\n") + 1 - MAX_DIFF_LINES)


def render_reasons(request: PermissionRequest, width: int | None) -> list[str]:
    """Why it is asked: the rule and the reason, and every part with its own."""
    lines = [f"Rule {request.rule} asks: {request.reason}."]
    lines += [f"  {escape_exact_line(part.subject)}: {_verdict(part)} (rule {part.rule})" for part in request.parts]
    lines += [f"It needs {', '.join(request.permissions)}."] if request.permissions else []
    lines.append(f"Request {request.id} in session {request.session_id}. {_explained(request)}")
    return [row for line in lines for row in wrap(to_one_line(line), width, "    ")]


def describe_subject(request: PermissionRequest) -> str:
    """What the request is about, in one line."""
    return escape_exact_line(request.command) if request.command is not None else to_one_line(request.description)


def _what(request: PermissionRequest, width: int | None) -> Iterator[str]:
    """The whole command, or what a tool would do, with what a program would be sent; then what cannot be seen in it."""
    if request.command is not None:
        text = request.command
        yield from _marked(text, "$ ", width)
    else:
        sent = request.preview.text if request.preview and request.preview.kind == "input" else ""
        text = f"{request.description}\n{sent}"
        # In one line: what a path or a kept command holds must not look like what handrail says.
        yield from wrap(escape_exact_line(request.description), width, "    ")
        yield from _marked(sent, "> ", width) if sent else ()
    if hidden := list_escaped_chars(text):
        kinds = ", ".join(hidden[:8]) + (", …" if len(hidden) > 8 else "")
        yield from wrap(f"! It has characters that cannot be seen; they are written out: {kinds}", width, "  ")
    for name, letters in find_look_alikes(" ".join((text, *request.hosts)))[:8]:
        yield from wrap(f"! {escape_control(name)} mixes scripts: {letters}", width, "  ")


def _marked(text: str, mark: str, width: int | None) -> Iterator[str]:
    """Every line of a text behind a mark, all of its characters seen; the lines after the first have another mark."""
    for line in text.split("\n"):
        yield from wrap(f"{mark}{escape_exact(line)}", width, "    ") if line else [mark]
        mark = "> "


def _reasons(request: PermissionRequest, width: int | None) -> Iterator[str]:
    asking = [part for part in request.parts if part.decision == "confirm"]
    if not asking:
        yield from wrap(f"    asks: {to_one_line(request.reason)}    rule {to_one_line(request.rule)}", width, "      ")
        return
    columns = [(escape_exact_line(part.subject), f"asks: {to_one_line(_said_once(part))}") for part in asking]
    first, second = (max(map(measure_width, column)) for column in zip(*columns, strict=True))
    if first + second + max(len(part.rule) for part in asking) + 17 > (width or _WIDEST_COLUMNS):
        first = second = 0  # too wide for columns: each part as it comes
    for part, (name, reason) in zip(asking, columns, strict=True):
        line = f"    {pad(name, first)}    {pad(reason, second)}    rule {to_one_line(part.rule)}"
        yield from wrap(line, width, "      ")


def _said_once(part: DecisionPart) -> str:
    """Why a part asks, without the names that stand beside it anyway."""
    shorter = part.reason.removesuffix(part.subject).rstrip(" :") if part.subject else part.reason
    return shorter or part.reason


def _host(host: str) -> str:
    """A host with what it is, where it is not out on the internet."""
    return to_one_line(render_host(host))


def _place(request: PermissionRequest) -> Iterator[str]:
    """What is to be known of a command beside its words."""
    if request.edited:
        yield "! You changed this command: the model called another one, and is told so."
    if request.command is not None and request.cwd not in {None, "."}:
        yield f"Runs in the folder {escape_exact_line(request.cwd or '')}"


def _remarks(request: PermissionRequest) -> Iterator[str]:
    """What a yes means beyond what is seen."""
    if request.fingerprint is not None:
        told = f"Nothing has been sent. Yes sends it to {to_one_line(request.server_name)} for real"
        yield f"{told}; what that does is not covered by undo."
    elif request.preview and request.preview.kind == "input":
        yield _NOT_SENT
    elif request.command is None and request.preview is None and request.kind is None:
        yield "Not tried. Nothing has run. Yes runs it for real."
    if request.tier == 0:
        yield f"! {_NO_SANDBOX}"
    if request.hosts:
        how_long = "as long as it goes on" if request.background else "for this call"
        yield f"Would open {', '.join(map(_host, request.hosts))} {how_long}."
    if request.background:
        yield f"! {_GOES_ON}"
    if request.kind == "external_directory":
        folders = ", ".join(escape_exact_line(folder) for folder in request.pattern[::2])
        doing = "reading and writing" if request.access == "write" else "reading"
        yield f"Yes opens {folders}, outside the workspace, for {doing}."


def _preview_lines(request: PermissionRequest, width: int | None, most: int | None) -> Iterator[str]:
    preview = request.preview
    if preview is None or preview.kind != "diff":
        return
    if request.fingerprint is not None:
        yield from wrap(f"! What {to_one_line(request.server_name)} says of this tool is not what was approved:", width)
    else:
        told = "Your files are untouched. Yes makes this change, and undo takes it back:"
        yield f"{describe_preview_age(request)} {told}".lstrip()
    lines = preview.text.rstrip("\n").split("\n")
    shown = lines if most is None else lines[:most]
    for line in shown:
        yield from _diff_rows(line, width)
    if len(lines) > len(shown):
        yield f"… {len(lines) - len(shown)} more lines of it"
    elif preview.truncated:
        yield "… the preview is cut here"


def _diff_rows(line: str, width: int | None) -> Iterator[str]:
    return wrap(escape_control(line.expandtabs(8)), width, "  ") if line else iter([""])


def _verdict(part: DecisionPart) -> str:
    return f"{_VERDICTS[part.decision]}, {part.reason}"


def _explained(request: PermissionRequest) -> str:
    return "handrail policy explain shows how a command is read." if request.command is not None else ""


# § [terminal.told] The line that stays after an answer.


def is_kept(request: PermissionRequest, answer: Answer) -> bool:
    """Whether the answer commits what a preview changed: what came of that is known only when it has been done."""
    return has_preview_run(request) and answer.kind in {"once", "session", "workspace"}


def render_answer_line(request: PermissionRequest, answer: Answer, *, width: int, plain: bool) -> str:
    """What was answered."""
    if answer.kind == "deny":
        done = "dropped" if has_preview_run(request) else "denied"
        said = f": {escape_exact_line(answer.reason)}" if answer.reason else ""
        room = max(20, width - measure_width(said) - 15)
        subject = truncate_to_width(describe_subject(request), room)
        return truncate_to_width(f"{f'{done}:' if plain else '⊘'} You {done} {subject}{said}", width)
    done = "took only the output of" if answer.kind == "output" else "allowed"
    how = "; its changes are dropped" if answer.kind == "output" else _how(request, answer)
    room = max(20, width - measure_width(how) - measure_width(done) - 8)
    return f"{'ok:' if plain else '✓'} You {done} {truncate_to_width(describe_subject(request), room)}{how}"


def render_kept_line(
    request: PermissionRequest, answer: Answer, result: ToolResult[Any] | None, *, width: int, plain: bool
) -> str:
    """What was committed, and the number to undo it; or why it was not. Without a result, it waits for others."""
    if result is not None and result.error is not None:
        why = f": {to_one_line(result.error.message)}"
        room = max(20, width - measure_width(why) - 14)
        subject = truncate_to_width(describe_subject(request), room)
        return truncate_to_width(f"{'error:' if plain else '✗'} Not kept: {subject}{why}", width)
    between = ", " if plain else " · "
    facts = [_changed(request), *_undo(result), *_list_granted(request, answer)]
    facts += ["kept when all of its batch is answered"] if result is None else []
    how = "".join(f"{between}{fact}" for fact in facts)
    done = "kept" if result is not None else "said yes to"
    room = max(20, width - measure_width(how) - measure_width(done) - 8)
    return f"{'ok:' if plain else '✓'} You {done} {truncate_to_width(describe_subject(request), room)}{how}"


def format_folders(request: PermissionRequest) -> str:
    """The folders that a yes opens."""
    return ", ".join(map(escape_exact_line, request.pattern[::2]))


def format_command_classes(request: PermissionRequest) -> str:
    """The classes of commands that a yes for longer stops the asking for."""
    return ", ".join(f"`{escape_exact_line(name)}`" for name in request.grants)


def _changed(request: PermissionRequest) -> str:
    tried = request.preview.tried if request.preview is not None else None
    return summarize_changes(tried).partition(",")[0] if tried is not None else format_file_count(0)


def _undo(result: ToolResult[Any] | None) -> list[str]:
    return [f"undo {result.meta.undo}"] if result is not None and result.meta.undo is not None else []


def _list_granted(request: PermissionRequest, answer: Answer) -> list[str]:
    return (
        [f"{format_command_classes(request)} in this {answer.kind}"] if answer.kind in {"session", "workspace"} else []
    )


def _how(request: PermissionRequest, answer: Answer) -> str:
    if answer.kind not in {"session", "workspace"}:
        return " once"
    if request.kind == "external_directory":
        return f", and opened {format_folders(request)} to this {answer.kind}"
    return f", and {format_command_classes(request)} in this {answer.kind}"


# § [terminal.choices] What can be answered to a request, by which key, and in which words.

KEYS: dict[str, AnswerKind] = {"y": "once", "s": "session", "w": "workspace", "o": "output", "n": "deny"}
NUMBERS = {"1": "y", "2": "s", "3": "n"}
KEEPING = frozenset("ysw")
"""The keys that would commit what a preview changed."""
_LETTERS = {number: letter for letter, number in NUMBERS.items()}
_MIN_TWO_COLUMN_WIDTH = 96
_NOT_NOW = " (not while it is out of date)"


class PromptChoice(NamedTuple):
    """One key and what it does."""

    key: str
    words: str


class PromptState(NamedTuple):
    """What can be done about a question besides answering it, where and when it is put."""

    retry: bool = False
    """Whether it can be tried again, also in other words."""
    outdated: tuple[str, ...] = ()
    """What changed since it was tried."""


_ONLY_ANSWERED = PromptState()


def list_choices(request: PermissionRequest, possible: PromptState = _ONLY_ANSWERED) -> list[PromptChoice]:
    """What is possible, in the order of the keys; a no always is."""
    words = _keeping(request) if has_preview_run(request) else _allowing(request)
    answers = {*request.answers, "deny"}
    late = _NOT_NOW if possible.outdated else ""
    found = [
        PromptChoice(key, words[kind] + (late if key in KEEPING else ""))
        for key, kind in KEYS.items()
        if kind in answers
    ]
    return [*found, PromptChoice("e", "edit the command and try again")] if _can_retry(request, possible) else found


def render_choices(
    request: PermissionRequest, *, width: int, plain: bool, possible: PromptState = _ONLY_ANSWERED
) -> list[str]:
    """The keys that answer, and those that show more. In plain form one a line, numbered where there is a number."""
    found, others = list_choices(request, possible), _others(request, possible, plain=plain)
    if plain:
        named = [f"{_numbered(one.key)}{one.words}" for one in found]
        return [row for line in (*named, *others) for row in wrap(line, width, "  ")]
    return [*_columns(found, width), *wrap(" · ".join(others), width, "  ")]


def _allowing(request: PermissionRequest) -> dict[AnswerKind, str]:
    grant = _granted(request)
    return {
        "once": "allow it, this once",
        "session": f"allow it, and {grant} in this session",
        "workspace": f"allow it, and {grant} in this workspace",
        "output": "drop its changes, show the model what it printed",
        "deny": "deny it and say why",
    }


def _keeping(request: PermissionRequest) -> dict[AnswerKind, str]:
    grant = _granted(request)
    return {
        "once": "keep this result",
        "session": f"keep, and {grant} in this session",
        "workspace": f"keep, and {grant} in this workspace",
        "output": "drop changes, show model output",
        "deny": "drop it and say why",
    }


def _granted(request: PermissionRequest) -> str:
    """What else a yes for longer lets be."""
    if request.kind == "external_directory":
        return f"open {format_folders(request)}"
    return f"stop asking for {format_command_classes(request)}"


def _others(request: PermissionRequest, possible: PromptState, *, plain: bool) -> list[str]:
    """What shows more, or puts it off."""
    tried = has_preview_run(request)
    named = ["d diff", "v output"] if tried else ["d all of the change"] if count_hidden_lines(request) else []
    named += ["r try again"] if _can_retry(request, possible) and (possible.outdated or not _went_well(request)) else []
    named += ["x why do you ask?", "l later (stays in `handrail approvals`)"]
    return [line.replace(" ", ": ", 1) for line in named] if plain else named


def _can_retry(request: PermissionRequest, possible: PromptState) -> bool:
    return possible.retry and request.command is not None


def _went_well(request: PermissionRequest) -> bool:
    tried = request.preview.tried if request.preview is not None else None
    return tried is not None and tried.exit_code == 0


def _numbered(key: str) -> str:
    return f"{_LETTERS[key]} or {key}: " if key in _LETTERS else f"{key}: "


def _columns(found: list[PromptChoice], width: int) -> list[str]:
    lines = {one.key: f"{one.key} {one.words}" for one in found}
    left = [lines[key] for key in "yno" if key in lines]
    right = [lines[key] for key in "swe" if key in lines]
    side = max(map(measure_width, left)) + 3
    if width >= _MIN_TWO_COLUMN_WIDTH and right and side + max(map(measure_width, right)) <= width:
        rows = max(len(left), len(right))
        left, right = (column + [""] * (rows - len(column)) for column in (left, right))
        return [f"{pad(one, side)}{other}".rstrip() for one, other in zip(left, right, strict=True)]
    return [row for one in found for row in wrap(lines[one.key], width, "  ")]
