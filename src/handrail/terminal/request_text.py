"""Renders a permission request as text."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from handrail.policy.network.needs import render_host
from handrail.protocol.calls import quote_purpose
from handrail.protocol.novelty import Novelty
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.text import (
    escape_char,
    escape_control,
    escape_exact_line,
    list_escaped_chars,
    measure_width,
    to_one_line,
    truncate_to_width,
    wrap,
)
from handrail.protocol.tool_spec import format_tool_label
from handrail.terminal.call_lines import describe_to_person
from handrail.terminal.changes_text import (
    AGAIN,
    MAX_FILE_ROWS,
    describe_preview_age,
    describe_preview_question,
    format_file_count,
    format_these,
    has_preview_run,
    render_diff_lines,
    render_preview_run,
    summarize_files,
)
from handrail.terminal.style import Paint, pad_painted, paint_nothing, truncate_painted, wrap_painted

MAX_DIFF_LINES = 40
"""Lines of a diff, unless all are asked for."""
_NOT_SENT = "Nothing has been sent. If you approve, it is sent for real; undo does not cover its effects."
_NO_SANDBOX = "No sandbox here: the command could read and change everything that you can (handrail doctor)."
_GOES_ON = "Keeps running after the call; not covered by undo."
_WIDEST_COLUMNS = 200
"""The width for columns if there is no limit. Each cell is padded to the longest."""
_VERDICTS = {"allow": "allowed", "confirm": "needs approval", "deny": "denied"}
_KEYS: dict[AnswerKind, str] = {"once": "y", "session": "s", "workspace": "w", "edits": "a", "output": "o", "deny": "n"}
_NUMBERS = {"y": "1", "s": "2", "n": "3"}
_MIN_TWO_COLUMN_WIDTH = 96
_NOT_NOW = " (not while it is out of date)"
_MAX_NEW = 5
"""Names of one kind in the line about what is unusual."""
_LONGER = frozenset({"session", "workspace"})
_ALLOW_EDITS = "allow plain edits in this session"
_EDITS_ALLOWED = "plain edits in this session"
_HOST_NAME = re.compile(r"[\w.-]+")
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC")
"""Scripts without letters that look like Latin ones."""


class PromptChoice(NamedTuple):
    key: str
    words: str
    answer: AnswerKind | None = None
    """None: the key edits the command."""
    number: str = ""
    """A digit that does the same as the key."""


class PromptState(NamedTuple):
    """What a prompt offers besides the answers."""

    retry: bool = False
    """Whether the request can be previewed again, also with another command."""
    outdated: tuple[str, ...] = ()
    """The paths that changed since the preview."""


_NO_RETRY = PromptState()


def render_title(request: PermissionRequest, number: int = 1, of: int = 1) -> str:
    """The tool, and the number of the request if there are several."""
    which = f"Permission {number} of {of}" if of > 1 else "Permission"
    return f"{which} · {to_one_line(format_tool_label(request.tool_name, request.server_name))}"


def describe_subject(request: PermissionRequest) -> str:
    """The command or the description, in one line."""
    return escape_exact_line(request.command) if request.command is not None else to_one_line(request.description)


def describe_question(request: PermissionRequest) -> str:
    """The effect of an approval, as a question."""
    if request.kind == "external_directory":
        return f"Open {_name_one(request.pattern[::2], 'folder', 'folder ')}?"
    if request.fingerprint is not None:
        return f"Call {to_one_line(request.tool_name)} of server {to_one_line(request.server_name)}?"
    if request.process is not None:
        return f"Send this input to {to_one_line(request.process)}?"
    return _describe_path_question(request) if request.command is None else _describe_command_question(request)


def _describe_command_question(request: PermissionRequest) -> str:
    if request.preview is not None and request.preview.tried is not None:
        return describe_preview_question(request.preview.tried)
    hosts = _name_one(tuple(map(render_host, request.hosts)), "host") if request.hosts else ""
    if request.background:
        return f"Start this background process{' and open ' * bool(hosts)}{hosts}?"
    return f"Open {hosts}?" if hosts else "Run this command?"


def _describe_path_question(request: PermissionRequest) -> str:
    paths = tuple(dict.fromkeys(request.paths))
    if not paths or not any(name.startswith("fs.") for name in request.permissions):
        return f"Call {to_one_line(format_tool_label(request.tool_name, request.server_name))}?"
    asking = {part.rule for part in request.parts if part.decision == "confirm"} or {request.rule}
    missing = {file.path for file in request.bound_files if file.hash is None}
    if "fs.write" in request.permissions and asking != {"fs.delete"}:
        verb = "Write" if missing.issuperset(paths) else "Change"
    else:
        verb = "Delete" if "fs.delete" in request.permissions else "Read"
    return f"{verb} {_name_one(paths, 'file')}?"


def _name_one(names: Sequence[str], noun: str, before: str = "") -> str:
    """The only name, or the number of names."""
    return f"{before}{escape_exact_line(names[0])}" if len(names) == 1 else format_these(len(names), noun)


def render_request(
    request: PermissionRequest,
    *,
    width: int | None,
    diff: int | None = MAX_DIFF_LINES,
    files: int | None = MAX_FILE_ROWS,
    outdated: tuple[str, ...] = (),
    again: str = AGAIN,
    plain: bool = False,
    paint: Paint = paint_nothing,
) -> list[str]:
    """The request in rows of at most `width` columns.

    `diff` limits the lines of the diff, `files` the rows of the list of files. None means no limit. 0 leaves the diff
    out. `outdated` are the paths that changed since the preview. `again` says how to preview the command again.
    """
    run = (
        render_preview_run(request, width, outdated=outdated, again=again, plain=plain, most=files, paint=paint)
        if request.command is not None
        else ()
    )
    return [
        *_render_call(request, width),
        *_render_asking_parts(request, width, paint),
        *(
            row
            for line in (*_list_circumstances(request), *run, *_list_effects(request))
            for row in wrap_painted(line, width, "  ")
        ),
        *_render_diff(request, width, diff, paint),
    ]


def count_hidden_lines(request: PermissionRequest) -> int:
    """The number of lines of the diff beyond `MAX_DIFF_LINES`."""
    if request.preview is None or request.preview.kind != "diff":
        return 0
    return max(0, request.preview.text.rstrip("\n").count("\n") + 1 - MAX_DIFF_LINES)


def render_reasons(request: PermissionRequest, width: int | None) -> list[str]:
    """The rule and reason of the request and of every part."""
    lines = [f"Rule {request.rule} needs your approval: {request.reason}."]
    lines += [
        f"  {escape_exact_line(part.subject)}: {_VERDICTS[part.decision]}, {part.reason} (rule {part.rule})"
        for part in request.parts
    ]
    lines += [f"Permissions: {', '.join(request.permissions)}."] if request.permissions else []
    how = "handrail policy explain shows how handrail reads a command." if request.command is not None else ""
    lines.append(f"Request {request.id} in session {request.session_id}. {how}")
    return [row for line in lines for row in wrap(to_one_line(line), width, "    ")]


def describe_answers(request: PermissionRequest, *, with_reason: bool = True) -> dict[AnswerKind, str]:
    """The possible answers in words. `with_reason`: whether a denial can have a reason."""
    keeps = has_preview_run(request)
    verb, reason = "keep" if keeps else "allow it", " and say why" if with_reason else ""
    if request.kind == "external_directory":
        grant = f"open {_format_folders(request)}"
    else:
        grant = f"stop asking for {_format_classes(request.grants)}"
    words: dict[AnswerKind, str] = {
        "once": "keep this result" if keeps else "allow it, this once",
        "session": f"{verb}, and {grant} in this session",
        "workspace": f"{verb}, and {grant} in this workspace",
        "edits": f"{verb}, and {_ALLOW_EDITS}",
        "output": "drop changes, show output to model",
        "deny": f"{'drop' if keeps else 'deny'} it{reason}",
    }
    return {kind: text for kind, text in words.items() if kind in request.answers or kind == "deny"}


def list_choices(request: PermissionRequest, possible: PromptState = _NO_RETRY) -> list[PromptChoice]:
    """The keys that answer or edit, in the order of the prompt."""
    choices: list[PromptChoice] = []
    for kind, words in describe_answers(request).items():
        late = _NOT_NOW if possible.outdated and Answer(kind=kind).approves else ""
        key = _KEYS[kind]
        choices.append(PromptChoice(key, words + late, kind, _NUMBERS.get(key, "")))
    if _can_retry(request, possible):
        choices.append(PromptChoice("e", "edit the command and try again"))
    return choices


def render_choices(
    request: PermissionRequest, *, width: int, plain: bool, possible: PromptState = _NO_RETRY
) -> list[str]:
    """The question, the keys that answer it, and those that show more. In plain form one a line, with their numbers."""
    choices, others = list_choices(request, possible), _list_other_choices(request, possible)
    question = () if possible.outdated else tuple(wrap(describe_question(request), width, "  "))
    if plain:
        lines = [f"{f'{one.number} or ' if one.number else ''}{one.key}: {one.words}" for one in (*choices, *others)]
        return [*question, *(row for line in lines for row in wrap(line, width, "  "))]
    more = wrap(" · ".join(f"{one.key} {one.words}" for one in others), width, "  ")
    return [*question, *_arrange(choices, width), *more]


def is_kept(request: PermissionRequest, answer: Answer) -> bool:
    """Whether the answer commits a preview. Its outcome is known only after the commit."""
    return has_preview_run(request) and answer.approves


def render_answer_line(
    request: PermissionRequest, answer: Answer, *, width: int, plain: bool, paint: Paint = paint_nothing
) -> str:
    """The line that stays after an answer."""
    if answer.kind == "deny":
        done = "dropped" if has_preview_run(request) else "denied"
        reason = f": {escape_exact_line(answer.reason)}" if answer.reason else ""
        subject = _shorten_subject(request, width - measure_width(reason) - 15)
        sign = paint(f"{done}:" if plain else "⊘", "refused")
        return truncate_painted(f"{sign} You {done} {subject}{reason}", width)
    if answer.kind == "output":
        done, how = "took only the output of", "; its changes are dropped"
    elif answer.kind in _LONGER and request.kind == "external_directory":
        done, how = "allowed", f", and opened {_format_folders(request)} to this {answer.kind}"
    elif answer.kind == "edits":
        done, how = "allowed", f", and {_EDITS_ALLOWED}"
    elif answer.kind in _LONGER:
        done, how = "allowed", f", and {_format_classes(answer.grants or request.grants)} in this {answer.kind}"
    else:
        done, how = "allowed", " once"
    return _render_success(request, done, how, width, plain=plain, paint=paint)


def render_kept_line(
    request: PermissionRequest,
    answer: Answer,
    result: ToolResult[Any] | None,
    *,
    width: int,
    plain: bool,
    paint: Paint = paint_nothing,
) -> str:
    """The line that stays after a commit: its number for undo, or its error. Without a result, others must answer."""
    if result is not None and result.error is not None:
        why = f": {to_one_line(describe_to_person(result.error))}"
        subject = _shorten_subject(request, width - measure_width(why) - 14)
        return truncate_painted(f"{paint('error:' if plain else '✗', 'failed')} Not kept: {subject}{why}", width)
    run, is_edit = request.preview.tried if request.preview is not None else None, not has_preview_run(request)
    facts = [] if is_edit else [summarize_files(run) if run is not None else format_file_count(0)]
    facts += [f"undo {result.meta.undo}"] if result is not None and result.meta.undo is not None else []
    granted = _format_classes(answer.grants or request.grants)
    facts += [f"{granted} in this {answer.kind}"] if answer.kind in _LONGER else []
    facts += [_EDITS_ALLOWED] if answer.kind == "edits" else []
    facts += [f"{'runs' if is_edit else 'kept'} when its whole batch has answers"] if result is None else []
    how = "".join(f"{', ' if plain else ' · '}{fact}" for fact in facts)
    done = "approved" if result is None else "allowed" if is_edit else "kept"
    return _render_success(request, done, how, width, plain=plain, paint=paint)


def _render_success(request: PermissionRequest, done: str, how: str, width: int, *, plain: bool, paint: Paint) -> str:
    subject = _shorten_subject(request, width - measure_width(how) - measure_width(done) - 8)
    return f"{paint('ok:' if plain else '✓', 'ok')} You {done} {subject}{paint(how, 'dim')}"


def _shorten_subject(request: PermissionRequest, room: int) -> str:
    return truncate_to_width(describe_subject(request), max(20, room))


def _format_folders(request: PermissionRequest) -> str:
    """The folders that an approval opens."""
    return ", ".join(map(escape_exact_line, request.pattern[::2]))


def _format_classes(grants: Sequence[str]) -> str:
    """The classes of commands that a standing approval covers."""
    return ", ".join(f"`{escape_exact_line(name)}`" for name in grants)


# The parts of a request.


def _render_call(request: PermissionRequest, width: int | None) -> Iterator[str]:
    """The whole command, or the description with the input for a program. Then warnings about its characters."""
    if request.command is not None:
        text = request.command
        yield from _render_verbatim(text, "$ ", width)
    else:
        sent = request.preview.text if request.preview and request.preview.kind == "input" else ""
        text = f"{request.description}\n{sent}"
        # In one line: a path or a stored command must not look like text of handrail.
        yield from wrap(escape_exact_line(request.description), width, "    ")
        yield from _render_verbatim(sent, "> ", width) if sent else ()
    if hidden := list_escaped_chars(text):
        kinds = ", ".join(hidden[:8]) + (", …" if len(hidden) > 8 else "")
        yield from wrap(f"! Invisible characters are shown as escapes: {kinds}", width, "  ")
    for name, letters in _find_look_alikes(" ".join((text, *request.hosts)))[:8]:
        yield from wrap(f"! {escape_control(name)} mixes scripts: {letters}", width, "  ")


def _render_verbatim(text: str, mark: str, width: int | None) -> Iterator[str]:
    """Every line with all its characters visible, behind a mark. Later lines have the mark `>`."""
    for line in text.split("\n"):
        yield from wrap(f"{mark}{escape_exact_line(line)}", width, "    ") if line else [mark]
        mark = "> "


def _render_asking_parts(request: PermissionRequest, width: int | None, paint: Paint) -> Iterator[str]:
    asking = [part for part in request.parts if part.decision == "confirm"]
    if not asking:
        text = f"    needs approval: {to_one_line(request.reason)}"
        yield from _append_rule(text, request.rule, width, paint)
        return
    columns = [
        (escape_exact_line(part.subject), f"needs approval: {to_one_line(part.effect or part.reason)}")
        for part in asking
    ]
    first, second = (max(map(measure_width, column)) for column in zip(*columns, strict=True))
    if first + second + max(len(part.rule) for part in asking) + 17 > (width or _WIDEST_COLUMNS):
        first = second = 0  # too wide for columns
    for part, (name, reason) in zip(asking, columns, strict=True):
        yield from _append_rule(
            f"    {pad_painted(name, first)}    {pad_painted(reason, second)}", part.rule, width, paint
        )


def _append_rule(text: str, rule: str, width: int | None, paint: Paint) -> Iterator[str]:
    """The rows of a text with its rule, which stays in one row if it can."""
    named = f"rule {to_one_line(rule)}"
    *rows, last = wrap(text, width, "      ")
    fits = width is None or measure_width(last) + 4 + len(named) <= width
    yield from (*rows, f"{last}    {paint(named, 'dim')}") if fits else (*rows, last)
    yield from () if fits else wrap_painted(f"      {paint(named, 'dim')}", width, "      ")


def _list_circumstances(request: PermissionRequest) -> Iterator[str]:
    if request.edited:
        yield "! You edited this command. The result tells the model so."
    if request.command is not None and request.cwd not in {None, "."}:
        yield f"Runs in the folder {escape_exact_line(request.cwd or '')}"
    if request.purpose and request.command is not None:
        yield f"The model says: {quote_purpose(request.purpose)}"
    if request.unusual is not None:
        yield f"! {_describe_novelty(request.unusual)}"


def _describe_novelty(novelty: Novelty) -> str:
    """How a call differs from earlier ones in its workspace, in one line."""
    hosts = tuple(map(render_host, novelty.hosts))
    facts = ["first deletion"] if novelty.deletes else []
    named = {"host": hosts, "program": novelty.programs, "folder": novelty.folders}
    facts += [_name_new(noun, names) for noun, names in named.items() if names]
    basis = [f"{novelty.approvals} approvals"] if hosts or novelty.programs else []
    basis += [f"{novelty.changes} changes"] if novelty.deletes or novelty.folders else []
    return f"Unusual here, compared with the last {' and '.join(basis)}: {'; '.join(facts)}."


def _name_new(noun: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NEW} more" if len(names) > _MAX_NEW else ""
    return f"new {noun}{'s' * (len(names) > 1)} {', '.join(map(escape_exact_line, names[:_MAX_NEW]))}{more}"


def _list_effects(request: PermissionRequest) -> Iterator[str]:
    """The effects of an approval beyond the preview."""
    if request.fingerprint is not None:
        sent = f"Nothing has been sent. If you approve, {to_one_line(request.server_name)} gets this input"
        yield f"{sent}; undo does not cover its effects."
    elif request.preview and request.preview.kind == "input":
        yield _NOT_SENT
    elif request.command is None and request.preview is None and request.kind is None:
        yield "No preview. Nothing has run. If you approve, it runs for real."
    if request.tier == 0:
        yield f"! {_NO_SANDBOX}"
    if request.hosts:
        hosts = ", ".join(to_one_line(render_host(host)) for host in request.hosts)
        yield f"Would open {hosts} {'while it runs' if request.background else 'for this call'}."
    if request.background:
        yield f"! {_GOES_ON}"
    if request.kind == "external_directory":
        access = "reading and writing" if request.access == "write" else "reading"
        yield f"Approval opens {_format_folders(request)}, outside the workspace, for {access}."


def _render_diff(request: PermissionRequest, width: int | None, most: int | None, paint: Paint) -> Iterator[str]:
    preview = request.preview
    if preview is None or preview.kind != "diff":
        return
    if request.fingerprint is not None:
        yield from wrap(f"! {to_one_line(request.server_name)} changed this tool since it was approved:", width)
    else:
        effect = "Your files are untouched. If you approve, handrail makes this change. Undo can revert it"
        yield from wrap(f"{describe_preview_age(request)} {effect}{'.' if most == 0 else ':'}".lstrip(), width, "  ")
    if most != 0:
        yield from render_diff_lines(preview, width, most, paint)


# The keys.


def _list_other_choices(request: PermissionRequest, possible: PromptState) -> list[PromptChoice]:
    """The keys that show more, retry, or leave the request for later."""
    choices: list[PromptChoice] = []
    if has_preview_run(request):
        choices += [PromptChoice("d", "diff"), PromptChoice("v", "output")]
    elif count_hidden_lines(request):
        choices.append(PromptChoice("d", "the whole change"))
    run = request.preview.tried if request.preview is not None else None
    if _can_retry(request, possible) and (possible.outdated or run is None or run.exit_code != 0):
        choices.append(PromptChoice("r", "try again"))
    return [
        *choices,
        PromptChoice("x", "why do you ask?"),
        PromptChoice("l", "later (stays in `handrail approvals`)"),
    ]


def _can_retry(request: PermissionRequest, possible: PromptState) -> bool:
    return possible.retry and request.command is not None


def _arrange(choices: list[PromptChoice], width: int) -> list[str]:
    """The choices in two columns if they fit."""
    lines = {one.key: f"{one.key} {one.words}" for one in choices}
    left = [lines[key] for key in "yno" if key in lines]
    right = [lines[key] for key in "swae" if key in lines]
    side = max(map(measure_width, left)) + 3
    if width >= _MIN_TWO_COLUMN_WIDTH and right and side + max(map(measure_width, right)) <= width:
        rows = max(len(left), len(right))
        left, right = (column + [""] * (rows - len(column)) for column in (left, right))
        return [f"{pad_painted(one, side)}{other}".rstrip() for one, other in zip(left, right, strict=True)]
    return [row for line in lines.values() for row in wrap(line, width, "  ")]


# Names that mix scripts, such as a host name with a Cyrillic letter


def _find_look_alikes(text: str) -> tuple[tuple[str, str], ...]:
    """The names with Latin and other letters, each with its other letters escaped."""
    if text.isascii():
        return ()
    names = dict.fromkeys(name for name in _HOST_NAME.findall(text) if _is_mixed(name))
    return tuple((name, _escape_letters(name)) for name in names)


def _is_mixed(name: str) -> bool:
    if name.isascii():
        return False
    scripts = {_find_script(char) for char in name if char.isalpha()}
    return len(scripts - set(_EAST_ASIAN)) > 1


def _find_script(char: str) -> str:
    """The script of a letter: the first word of its Unicode name."""
    return "LATIN" if char.isascii() else unicodedata.name(char, "?").partition(" ")[0].partition("-")[0]


def _escape_letters(name: str) -> str:
    return "".join(char if not char.isalpha() or _find_script(char) == "LATIN" else escape_char(char) for char in name)
