"""What waits and what is granted, as the words of a command mean it."""

import os
from argparse import Namespace
from collections.abc import Sequence

from handrail.cli.exits import FAILED, Stop
from handrail.cli.output import cut
from handrail.cli.place import workspace_of
from handrail.cli.sessions import state_of_here
from handrail.protocol.permission import OpenedFolder
from handrail.store.inbox import Asked, Inbox, Kept, Waiting
from handrail.store.short_ids import matching, short_ids
from handrail.terminal.request import subject

_NEXT = "handrail approvals lists what does."


def inbox_of(options: Namespace) -> Inbox:
    """The inbox of the workspace, or of all of them."""
    workspace = None if options.all else os.path.realpath(workspace_of(options))
    return Inbox(state_of_here(), workspace)


def found_request(options: Namespace) -> Waiting:
    """The request that an id means: of what waits in this workspace, else of what waits anywhere."""
    here = here_of(options)
    chosen = _only(options.id, Inbox(state_of_here(), here).waiting()) if here is not None else None
    if chosen is None and not options.workspace:
        chosen = _only(options.id, Inbox(state_of_here(), None).waiting())
    if chosen is not None:
        return chosen
    answered = Inbox(state_of_here(), None).answered()
    before = matching(options.id, answered)
    if len(before) == 1:
        told = f"{_quoted(options.id)} was answered already: {answered[before[0]].kind}."
        raise Stop(f"{told} Nothing more was run; handrail log tells what came of it.", FAILED)
    if matching(options.id, (one.question.tool_call_id for one in Inbox(state_of_here(), None).questions())):
        raise Stop(f"{_quoted(options.id)} is a question; handrail approvals reply answers it. Nothing was done.")
    raise Stop(f"nothing waits under {_quoted(options.id)}. Nothing was run. {_NEXT}", FAILED)


def found_grant(options: Namespace) -> Kept:
    """What an id, or the path of a folder, means of what is granted in this workspace, else anywhere."""
    here = here_of(options)
    near = Inbox(state_of_here(), here).granted() if here is not None else []
    for kept in (near, [] if options.workspace else Inbox(state_of_here(), None).granted()):
        by_path = [one for one in kept if options.id.startswith("/") and _is_at(one, options.id)]
        named = {grant_id(one): one for one in kept}
        ids = matching(options.id, named)
        if len(ids) > 1:
            raise _ambiguous(options.id, [(one, grant_name(named[one])) for one in ids])
        if by_path or ids:
            return by_path[0] if by_path else named[ids[0]]
    message = f"nothing is granted under {_quoted(options.id)}. Nothing was revoked. handrail approvals lists what is."
    raise Stop(message, FAILED)


def short_id_of(request_id: str) -> str:
    """The short id of a request among all that waits."""
    waiting = [one.request.id for one in Inbox(state_of_here(), None).waiting()]
    return short_ids(dict.fromkeys([request_id, *waiting]))[request_id]


def short_names(waiting: list[Waiting], granted: list[Kept], asked: Sequence[Asked] = ()) -> dict[str, str]:
    """The short ids of all of them: none means two."""
    questions = (one.question.tool_call_id for one in asked)
    return short_ids([*(one.request.id for one in waiting), *map(grant_id, granted), *questions])


def grant_id(kept: Kept) -> str:
    """What revokes it: of a folder, made from its path and where it counts."""
    granted = kept.granted
    if not isinstance(granted, OpenedFolder):
        return granted.id
    import hashlib  # noqa: PLC0415  few open folders

    told = f"{kept.home} {granted.scope} {granted.session_id} {granted.path} {granted.access}"
    return f"f-{hashlib.sha256(told.encode(errors='surrogateescape')).hexdigest()[:12]}"


def grant_name(kept: Kept) -> str:
    """What it lets be, in a few words."""
    granted = kept.granted
    return f"{granted.path} ({granted.access})" if isinstance(granted, OpenedFolder) else granted.command


def here_of(options: Namespace) -> str | None:
    """The workspace that is looked at first."""
    try:
        return os.path.realpath(options.workspace or os.getcwd())
    except OSError:  # the current folder is gone
        return None


def _is_at(kept: Kept, path: str) -> bool:
    return isinstance(kept.granted, OpenedFolder) and os.path.realpath(path) == kept.granted.path


def _only(spelled: str, waiting: list[Waiting]) -> Waiting | None:
    by_id = {one.request.id: one for one in waiting}
    ids = matching(spelled, by_id)
    if len(ids) > 1:
        raise _ambiguous(spelled, [(one, subject(by_id[one].request)) for one in ids])
    return by_id[ids[0]] if ids else None


def _ambiguous(spelled: str, found: list[tuple[str, str]]) -> Stop:
    names = short_ids([one for one, _ in found])
    told = ", ".join(f"{names[one]} ({cut(what, 40)})" for one, what in found)
    return Stop(f"{_quoted(spelled)} could be {told}. Nothing was done. Say more of the id.")


def _quoted(text: str) -> str:
    return repr(cut(text, 80))
