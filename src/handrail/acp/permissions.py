"""Asks the person at an editor."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, cast

from acp import RequestError
from acp.helpers import ToolCallContentVariant, text_block, tool_content
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CreateElicitationResponse,
    ElicitationFormSessionMode,
    ElicitationMultiSelectPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionResponse,
    StringMultiSelectItems,
    ToolCallUpdate,
)
from pydantic import ValidationError

from handrail.acp.cards import (
    DiffContent,
    build_location,
    build_verbatim_content,
    format_title,
    get_tool_kind,
)
from handrail.agent.cancel import TurnCancelledError
from handrail.agent.loop import ask_in_turn
from handrail.async_api import AsyncHandrail
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, AnswerKind, ApproverReply, PermissionRequest, Question, Reply
from handrail.protocol.text import to_one_line
from handrail.terminal.request_text import (
    MAX_DIFF_LINES,
    describe_answers,
    describe_question,
    describe_subject,
    render_request,
)

_POLL_SECONDS = 0.5
"""Seconds between two checks whether another process answered: nothing notifies us."""
_KINDS: dict[AnswerKind, PermissionOptionKind] = {
    "once": "allow_once",
    "workspace": "allow_always",
    "edits": "allow_always",
    "session": "allow_always",
    "deny": "reject_once",
    "output": "reject_always",
}
"""In the order of the buttons. Some clients show one button for each kind, under their own name, and take the last
option of it, so the narrower approval is last. "output" shows the model the output of a rejected command. Its kind is
one that clients take neither for a plain rejection nor for an approval."""
_CHOICE, _TEXT = "choice", "text"


class EditorLink(NamedTuple):
    """The connection of a session to its editor."""

    client: Client
    folder: str
    """The workspace as the editor calls it, which may be a link to it. Updates name files by this path."""
    has_forms: bool


class EditorApprover:
    """Asks the editor until nothing is pending. An answer from elsewhere closes the prompt of the editor."""

    def __init__(self, rail: AsyncHandrail, editor: EditorLink, catch_up: Callable[[], Awaitable[None]]) -> None:
        """`catch_up` sends all events up to now: the editor has to know a call before it is asked about it."""
        self._rail, self._editor, self._catch_up = rail, editor, catch_up
        self._leaving = asyncio.Event()
        self._is_asking = False

    def leave(self) -> bool:
        """Stops asking. Requests stay pending. Returns whether the editor was asked just now."""
        self._leaving.set()
        return self._is_asking

    async def __call__(self, parked: Parked) -> Done | Parked:
        """Raises TurnCancelledError if the editor says that the turn is over."""
        try:
            return await ask_in_turn(self._rail, parked, self)
        except UsageError:
            if not parked.questions:
                raise
            return parked  # the form has no valid reply, so the next prompt is the reply
        finally:
            self._is_asking = False

    async def ask(self, subject: PermissionRequest | Question, _number: int, _total: int) -> ApproverReply:
        self._is_asking = True
        await self._catch_up()
        client, session_id = self._editor.client, self._rail.session_id
        if isinstance(subject, Question):
            if not self._editor.has_forms:
                return ApproverReply(subject)
            form = build_question_form(subject, session_id)
            filled = await self._race(client.create_elicitation(message=subject.question, mode=form), subject)
            return ApproverReply(subject, None if filled is None else parse_form_reply(filled) or Answer(kind="deny"))
        card, options = build_card(subject, self._editor.folder), build_options(subject)
        response = await self._race(
            client.request_permission(session_id=session_id, tool_call=card, options=options), subject
        )
        return ApproverReply(subject, None if response is None else parse_answer(response, subject))

    def report(self, _reply: ApproverReply, _outcome: Done | Parked | None) -> None:
        """The editor gets the outcome as events."""

    async def _race(self, asked: Coroutine[Any, Any, Any], subject: PermissionRequest | Question) -> Any | None:
        """The response of the editor. None if it cannot respond, another process answered, or asking stops."""
        response = asyncio.ensure_future(asked)
        others = [asyncio.ensure_future(self._wait_for_others(subject)), asyncio.ensure_future(self._leaving.wait())]
        try:
            await asyncio.wait({response, *others}, return_when=asyncio.FIRST_COMPLETED)
            return response.result() if response.done() else None
        except (RequestError, ConnectionError, ValidationError):
            return None
        finally:
            for one in (response, *others):
                one.cancel()
            await asyncio.wait({response, *others})
            self._is_asking = False  # only now: `leave` must not cancel a request that is still shown

    async def _wait_for_others(self, subject: PermissionRequest | Question) -> None:
        while await self._rail.is_pending(subject):
            await asyncio.sleep(_POLL_SECONDS)


# Permission requests


def build_card(request: PermissionRequest, workspace: str) -> ToolCallUpdate:
    """The call with everything that a person has to know for an answer."""
    diff, kind = _build_diff(request, workspace), get_tool_kind(request.called)
    # The paths of a command may be no files: words of a script, addresses.
    paths = request.paths if request.command is None else ()
    locations = diff.locations if diff is not None else []
    return ToolCallUpdate(
        tool_call_id=request.tool_call_id,
        title=format_title(kind, describe_subject(request)),
        kind=kind,
        status="pending",
        content=_build_contents(request, diff),
        locations=locations or [build_location(path, workspace) for path in paths],
    )


def build_options(request: PermissionRequest) -> list[PermissionOption]:
    """The possible answers, in the words of the terminal. Buttons take no reason."""
    words = describe_answers(request, with_reason=False)
    return [
        PermissionOption(option_id=kind, name=words[kind][0].upper() + words[kind][1:], kind=_KINDS[kind])
        for kind in _KINDS
        if kind in words
    ]


def parse_answer(response: RequestPermissionResponse, request: PermissionRequest) -> Answer:
    """The answer of the person. An option that was not offered is a denial. TurnCancelledError if none was chosen."""
    if not isinstance(response.outcome, AllowedOutcome):
        raise TurnCancelledError
    offered: dict[str, AnswerKind] = {kind: kind for kind in request.answers}
    return Answer(kind=offered.get(response.outcome.option_id, "deny"))


def _build_diff(request: PermissionRequest, workspace: str) -> DiffContent | None:
    """The changes of files. Input for a program and a changed tool description are none, even if they look like it."""
    preview = request.preview if request.fingerprint is None else None
    return DiffContent(preview.text, workspace) if preview is not None and preview.kind in {"diff", "run"} else None


def _build_contents(request: PermissionRequest, diff: DiffContent | None) -> list[ToolCallContentVariant]:
    """Some clients show a diff only if it is first. For a command the first content is its text instead: the diff is
    only a part of its effect."""
    rows = render_request(request, width=None, diff=MAX_DIFF_LINES if diff is None else 0)
    text, preview = build_verbatim_content("\n".join((*rows, describe_question(request)))), request.preview
    diffs = diff.contents if diff is not None else []
    contents = [text, *diffs] if request.command is not None else [*diffs, text]
    if diff is not None and (not diff.is_complete or (preview is not None and preview.truncated)):
        contents.append(tool_content(text_block(f"There is more: `handrail approvals show {request.id} --diff`")))
    if preview is not None and preview.output.strip():
        contents.append(build_verbatim_content(preview.output))
    return contents


# Questions of the model. Without forms the turn ends with the question, and the next prompt is the reply. Buttons could
# not take the person's own words, and would be gone with the editor.


def build_question_form(question: Question, session_id: str) -> ElicitationFormSessionMode:
    properties: dict[str, Any] = {}
    if question.options:
        options = list(question.options)
        properties[_CHOICE] = (
            ElicitationMultiSelectPropertySchema(
                type="array", items=StringMultiSelectItems(type="string", enum=options)
            )
            if question.multiple
            else ElicitationStringPropertySchema(type="string", enum=options)
        )
    if question.custom:
        title = "Or in your own words" if question.options else "Your reply"
        properties[_TEXT] = ElicitationStringPropertySchema(type="string", title=title)
    schema = ElicitationSchema(properties=properties, required=list(properties) if len(properties) == 1 else None)
    return ElicitationFormSessionMode(
        session_id=session_id, tool_call_id=question.tool_call_id, requested_schema=schema
    )


def parse_form_reply(response: CreateElicitationResponse) -> Reply | None:
    """The reply of the person. None if they gave none."""
    if not isinstance(response, AcceptElicitationResponse):
        return None
    fields = response.content or {}
    choice, text = fields.get(_CHOICE), fields.get(_TEXT)
    chosen = cast("list[Any]", choice) if isinstance(choice, list) else [choice] if choice else []
    reply = Reply(chosen=tuple(map(str, chosen)), text=text if isinstance(text, str) and text.strip() else None)
    return reply if reply.chosen or reply.text else None


def render_question(question: Question) -> str:
    """The question for a person who replies with their next prompt."""
    rows = [f"{number}. {to_one_line(option)}" for number, option in enumerate(question.options, start=1)]
    how = "Reply with a number or in words." if rows else "Reply in your own words."
    return "\n".join(("", "", question.question.rstrip(), "", *rows, "", f"*{how}*", ""))
