"""What waits and what is granted, as the words of a command mean it."""

import os
from argparse import Namespace
from collections.abc import Sequence

from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.place import resolve_workspace
from handrail.cli.sessions import open_state_folder
from handrail.protocol.permissions import InboxQuestion, InboxRequest, OpenedFolder
from handrail.protocol.records import StoredGrant, list_matching_ids, shorten_ids
from handrail.protocol.text import quote_text, truncate
from handrail.store.inbox import Inbox
from handrail.terminal.request_text import describe_subject

_NEXT = "handrail approvals lists what does."


def open_inbox(options: Namespace) -> Inbox:
    """The inbox of the workspace, or of all of them."""
    workspace = None if options.all else os.path.realpath(resolve_workspace(options))
    return open_state_folder().open_inbox(workspace)


def resolve_request(options: Namespace) -> InboxRequest:
    """The request that an id means: of what waits in this workspace, else of what waits anywhere."""
    here = find_current_workspace(options)
    chosen = _only(options.id, open_state_folder().open_inbox(here).list_requests()) if here is not None else None
    if chosen is None and not options.workspace:
        chosen = _only(options.id, open_state_folder().open_inbox(None).list_requests())
    if chosen is not None:
        return chosen
    answered = open_state_folder().open_inbox(None).list_answers()
    before = list_matching_ids(options.id, answered)
    if len(before) == 1:
        told = f"{quote_text(options.id)} was answered already: {answered[before[0]].kind}."
        raise CommandFailed(f"{told} Nothing more was run; handrail log tells what came of it.", FAILED)
    if list_matching_ids(
        options.id, (one.question.tool_call_id for one in open_state_folder().open_inbox(None).list_questions())
    ):
        raise CommandFailed(
            f"{quote_text(options.id)} is a question; handrail approvals reply answers it. Nothing was done."
        )
    raise CommandFailed(f"nothing waits under {quote_text(options.id)}. Nothing was run. {_NEXT}", FAILED)


def resolve_grant(options: Namespace) -> StoredGrant:
    """What an id, or the path of a folder, means of what is granted in this workspace, else anywhere."""
    here = find_current_workspace(options)
    near = open_state_folder().open_inbox(here).list_grants() if here is not None else []
    for kept in (near, [] if options.workspace else open_state_folder().open_inbox(None).list_grants()):
        by_path = [one for one in kept if options.id.startswith("/") and _is_at(one, options.id)]
        named = {build_grant_id(one): one for one in kept}
        ids = list_matching_ids(options.id, named)
        if len(ids) > 1:
            raise _ambiguous(options.id, [(one, describe_grant(named[one])) for one in ids])
        if by_path or ids:
            return by_path[0] if by_path else named[ids[0]]
    told = f"nothing is granted under {quote_text(options.id)}. Nothing was revoked."
    raise CommandFailed(f"{told} handrail approvals lists what is.", FAILED)


def shorten_request_id(request_id: str) -> str:
    """The short id of a request among all that waits."""
    waiting = [one.request.id for one in open_state_folder().open_inbox(None).list_requests()]
    return shorten_ids(dict.fromkeys([request_id, *waiting]))[request_id]


def build_short_ids(
    waiting: list[InboxRequest], granted: list[StoredGrant], asked: Sequence[InboxQuestion] = ()
) -> dict[str, str]:
    """The short ids of all of them: none means two."""
    questions = (one.question.tool_call_id for one in asked)
    return shorten_ids([*(one.request.id for one in waiting), *map(build_grant_id, granted), *questions])


def build_grant_id(kept: StoredGrant) -> str:
    """What revokes it: of a folder, made from its path and where it counts."""
    granted = kept.granted
    if not isinstance(granted, OpenedFolder):
        return granted.id
    import hashlib  # noqa: PLC0415  few open folders

    told = f"{kept.home} {granted.scope} {granted.session_id} {granted.path} {granted.access}"
    return f"f-{hashlib.sha256(told.encode(errors='surrogateescape')).hexdigest()[:12]}"


def describe_grant(kept: StoredGrant) -> str:
    """What it lets be, in a few words."""
    granted = kept.granted
    return f"{granted.path} ({granted.access})" if isinstance(granted, OpenedFolder) else granted.command


def find_current_workspace(options: Namespace) -> str | None:
    """The workspace that is looked at first."""
    try:
        return os.path.realpath(options.workspace or os.getcwd())
    except OSError:  # the current folder is gone
        return None


def _is_at(kept: StoredGrant, path: str) -> bool:
    return isinstance(kept.granted, OpenedFolder) and os.path.realpath(path) == kept.granted.path


def _only(spelled: str, waiting: list[InboxRequest]) -> InboxRequest | None:
    by_id = {one.request.id: one for one in waiting}
    ids = list_matching_ids(spelled, by_id)
    if len(ids) > 1:
        raise _ambiguous(spelled, [(one, describe_subject(by_id[one].request)) for one in ids])
    return by_id[ids[0]] if ids else None


def _ambiguous(spelled: str, found: list[tuple[str, str]]) -> CommandFailed:
    names = shorten_ids([one for one, _ in found])
    told = ", ".join(f"{names[one]} ({truncate(what, 40)})" for one, what in found)
    return CommandFailed(f"{quote_text(spelled)} could be {told}. Nothing was done. Say more of the id.")
