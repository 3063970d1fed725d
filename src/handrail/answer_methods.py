"""What waits for a person, what they say to it and what they granted, as methods of the library."""

import os
from typing import TYPE_CHECKING

from handrail.asking import bind_answer
from handrail.entering import CallGate
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.events import Notice
from handrail.protocol.permissions import Answer, AnswerKind, OpenedFolder, PermissionRequest, StandingGrant
from handrail.protocol.text import render_value
from handrail.runtime import latch
from handrail.runtime.batch import answer_request, resume_batches
from handrail.runtime.steps import digest_environment

if TYPE_CHECKING:
    from handrail.protocol.permissions import Question, Reply


class AnswerMethods(CallGate):
    """Whatever has a session in which somebody may be asked."""

    def answer(
        self, request: str | PermissionRequest, answer: Answer | AnswerKind, *, reason: str | None = None
    ) -> Done | Parked:
        """Answers a permission request; with the last answer of its batch, the batch runs.

        A yes is to what was shown. By the request itself it is to what that shows; by its id, to the first that was: of
        a request that was tried again since, a yes names its `revision`.
        """
        given = answer if isinstance(answer, Answer) else Answer(kind=answer, reason=reason)
        request_id = request if isinstance(request, str) else request.id
        if not isinstance(request, str):
            given = bind_answer(request, given)
        outcome = self._enter(answer_request, self._session, request_id, given)
        if outcome is None:
            raise UsageError(f"the permission request {request_id[:80]!r} was answered already")
        return outcome

    def retry(self, request_id: str, command: str | None = None) -> PermissionRequest:
        """Tries the command of a request again that nobody has answered, or another one that a person wrote in its
        place; the request as it is now, under the same id. ToolError where policy refuses what was written."""
        from handrail.runtime.retrying import retry  # noqa: PLC0415  few are tried again

        return self._enter(retry, self._session, request_id, command)

    def refresh(self, request_id: str) -> PermissionRequest:
        """The waiting request, or, if an input of its preview changed or may have, the request with a new preview and a
        new id that takes its place. For an old request that is shown for a new call. ToolError if the call cannot be
        previewed any more."""
        from handrail.runtime.retrying import refresh  # noqa: PLC0415  as above

        return self._enter(refresh, self._session, request_id)

    def outdated(self, request: PermissionRequest) -> tuple[str, ...]:
        """The files that others changed since the request was put, as results name them: a yes to it would keep
        nothing. Empty where it still counts."""
        from handrail.runtime.outdating import list_outdated_files  # noqa: PLC0415  who asks a person

        return self._enter(list_outdated_files, self._session, request)

    def waiting(self) -> tuple[PermissionRequest, ...]:
        """The permission requests of this session that nobody has answered."""
        return self._enter(latch.load_parked, self._session).requests

    def reply(self, question: "str | Question", said: "Reply | str | None") -> Done:
        """Replies to a question of the model: with options, with own words, or with a text that is either; None puts it
        aside, which the model is told. By any process, exactly once: UsageError where it had its reply, or where it
        cannot be answered so."""
        from handrail.runtime.questions import reply  # noqa: PLC0415  few calls ask something

        call_id = question if isinstance(question, str) else question.tool_call_id
        outcome = self._enter(reply, self._session, call_id, said)
        if outcome is None:
            raise UsageError(f"the question {call_id[:80]!r} had its reply already")
        return outcome

    def waiting_questions(self) -> "tuple[Question, ...]":
        """What the model of this session asks, and nobody has replied to."""
        return self._enter(latch.load_parked, self._session).questions

    def would_differ(self, environment: str | None) -> bool:
        """Whether a command would get other variables here than where it was asked about (`request.environment`): a
        yes given here would not count then."""
        return environment is not None and self._enter(digest_environment, self._session) != environment

    def resume(self) -> Done | None:
        """Runs what a process that was killed left of batches that everything is answered of: the results of those
        batches, in the order of their calls. None where nothing was left. Nobody is asked again."""
        return self._enter(resume_batches, self._session)

    def grants(self) -> tuple[StandingGrant, ...]:
        """The classes of commands that people said not to be asked about again, in this session or this workspace."""
        return self._enter(self._session.grants.listed)

    def revoke(self, grant_id: str) -> None:
        """Ends a grant, at once and for every process; UsageError where there is none of this id."""
        revoked = self._enter(self._session.grants.revoke, grant_id)
        if revoked is None:
            raise UsageError(f"there is no grant {render_value(grant_id)}; grants() says which there are")
        text = f"The grant {revoked.id} was revoked: {revoked.command} asks again."
        self._enter(self._session.journal.append, (Notice, {"text": text}))

    def opened_folders(self) -> tuple[OpenedFolder, ...]:
        """The folders outside the workspace that people opened to this session, or to every session of the workspace.
        They are in force where the settings let people be asked (`paths.outside`)."""
        return self._enter(self._session.opened_roots.listed)

    def close_folder(self, path: str | os.PathLike[str]) -> None:
        """Closes a folder that a person opened, to this session and to the workspace; UsageError where none is."""
        if not self._enter(self._session.opened_roots.close, os.fspath(path)):
            raise UsageError(
                f"the folder {render_value(os.fspath(path))} was not opened; opened_folders() says which are"
            )
        self._enter(self._session.journal.append, (Notice, {"text": f"The folder {os.fspath(path)} was closed."}))
