"""A permission request as an editor puts it: a card with what would happen, and the answers as buttons."""

from acp.helpers import ToolCallContentVariant
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionResponse,
    ToolCallLocation,
    ToolCallUpdate,
)
from msgspec.structs import replace

from handrail.acp.cards import format_title, get_tool_kind, to_absolute
from handrail.acp.contents import DiffContent, build_text_content, build_verbatim_content
from handrail.protocol.permissions import Answer, AnswerKind, PermissionRequest
from handrail.terminal.request_text import describe_answers, describe_subject, render_request

_KINDS: dict[AnswerKind, PermissionOptionKind] = {
    "once": "allow_once",
    "workspace": "allow_always",
    "session": "allow_always",
    "deny": "reject_once",
    "output": "reject_always",
}
"""In the order of the buttons. Some clients show one button for each kind, by a name of their own, and take the last
option of it: theirs is the narrower yes. A plain no must never show the model what a refused command printed, so that
answer has a kind of its own, which no client takes for a plain no; nor for a yes, since it keeps nothing."""


def build_card(request: PermissionRequest, workspace: str) -> ToolCallUpdate:
    """The call with all that a person has to know before they answer."""
    shown, kind = _shown(request, workspace), get_tool_kind(request.called)
    # What a command is judged by may be no files: words of a script, addresses.
    paths = request.paths if request.command is None else ()
    named = [ToolCallLocation(path=to_absolute(path, workspace)) for path in paths]
    return ToolCallUpdate(
        tool_call_id=request.tool_call_id,
        title=format_title(kind, describe_subject(request)),
        kind=kind,
        status="pending",
        content=_contents(request, shown),
        locations=(shown.places if shown is not None else []) or named,
    )


def build_options(request: PermissionRequest) -> list[PermissionOption]:
    """The answers that are possible, in the words of the terminal."""
    words = describe_answers(request, with_reason=False)
    return [
        PermissionOption(option_id=kind, name=words[kind][0].upper() + words[kind][1:], kind=_KINDS[kind])
        for kind in _KINDS
        if kind in words
    ]


def parse_answer(response: RequestPermissionResponse, request: PermissionRequest) -> Answer | None:
    """What the person said; None where the client says that the turn is over. What is none of the options is a no."""
    outcome = response.outcome
    if not isinstance(outcome, AllowedOutcome):
        return None
    offered: dict[str, AnswerKind] = {kind: kind for kind in request.answers}
    return Answer(kind=offered.get(outcome.option_id, "deny"))


def _shown(request: PermissionRequest, workspace: str) -> DiffContent | None:
    """What would change. What a program would be sent, or a server says otherwise of its tool, is no difference of
    files, however much it looks like one."""
    preview = request.preview if request.fingerprint is None else None
    return DiffContent(preview.text, workspace) if preview is not None and preview.kind in {"diff", "run"} else None


def _contents(request: PermissionRequest, shown: DiffContent | None) -> list[ToolCallContentVariant]:
    """What a file would become is first: some clients show a difference only there. Of a command they show what is
    first, too, and that is not a part of what it would change."""
    told = build_verbatim_content(
        "\n".join(render_request(_without_diff(request), width=None)).rstrip("\n").removesuffix(":")
    )
    differences = shown.contents if shown is not None else []
    contents = [told, *differences] if request.command is not None else [*differences, told]
    if shown is not None and (not shown.is_complete or (request.preview is not None and request.preview.truncated)):
        contents.append(build_text_content(f"There is more: `handrail approvals show {request.id} --diff`"))
    if request.preview is not None and request.preview.output.strip():
        contents.append(build_verbatim_content(request.preview.output))
    return contents


def _without_diff(request: PermissionRequest) -> PermissionRequest:
    """The same for a text that stands beside the difference."""
    preview = request.preview
    if preview is None or preview.kind != "diff" or request.fingerprint is not None:
        return request
    return replace(request, preview=replace(preview, text="", truncated=False))
