"""Which session a run belongs to: a new one, one by its id, or the last one of the workspace."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.sessions import MAX_SHOWN_IDS, match_sessions, open_state_folder
from handrail.store.state_dir import make_id


def choose_session(options: Namespace, workspace: str) -> str:
    """The id of the session that the turn happens in."""
    if options.session is not None and not options.session:
        raise CommandFailed("--session is empty; name one, or leave it out for a new one. Nothing was run.")
    if options.resume is not None:
        return resolve_session(options.resume, workspace)
    if options.last:
        return _last_session(workspace)
    return options.session or make_id("s")


def resolve_session(spelled: str, workspace: str) -> str:
    """The session that somebody means by its id, or by the beginning of it."""
    found = match_sessions(spelled, os.path.realpath(workspace))
    if len(found) == 1:
        return found[0]
    if found:
        told = f"{spelled[:80]!r} may be {', '.join(found[:MAX_SHOWN_IDS])}{' …' if len(found) > MAX_SHOWN_IDS else ''}"
        raise CommandFailed(f"{told}. Nothing was run. Write more of the id.")
    told = f"this workspace has no session {spelled[:80]!r}. Nothing was run."
    raise CommandFailed(f"{told} handrail log --sessions lists those there are.", FAILED)


def _last_session(workspace: str) -> str:
    for talk in open_state_folder().list_conversations(os.path.realpath(workspace)):
        return talk.id
    told = "no model was talked to in this workspace yet, so there is nothing to go on with."
    raise CommandFailed(f"{told} Begin: handrail run PROMPT", FAILED)


def find_last_model(session: str, workspace: str) -> str | None:
    """Whom a session talked to last."""
    return open_state_folder().find_last_model(os.path.realpath(workspace), session)


def find_last_event(session: str, workspace: str) -> int:
    """The number of the last event that a session has; 0 for a new one."""
    return open_state_folder().count_events(os.path.realpath(workspace), session)
