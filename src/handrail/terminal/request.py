"""A permission request as text: what would be done, why that asks, and what a yes would mean."""

from collections.abc import Iterator

from handrail.policy.network.needs import render_host
from handrail.protocol.decisions import DecisionPart
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.text import (
    escape_control,
    escape_exact_line,
    list_escaped_chars,
    measure_width,
    pad,
    to_one_line,
    wrap,
)
from handrail.protocol.tool_spec import format_tool_label
from handrail.terminal.changed import MAX_FILE_ROWS
from handrail.terminal.look_alikes import find_look_alikes
from handrail.terminal.tried import AGAIN, describe_preview_age, render_preview_run

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
        yield from wrap(f"{mark}{escape_exact_line(line)}", width, "    ") if line else [mark]
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
