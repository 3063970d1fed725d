"""approvals revoke: ends what was granted, at once and for every process."""

from argparse import Namespace

from handrail.cli.exits import OK, Stop
from handrail.cli.inbox import found_grant, grant_id, grant_name
from handrail.cli.output import answer, answer_json, one_line
from handrail.cli.preferences import loaded_for
from handrail.protocol.permission import OpenedFolder
from handrail.protocol.wire import encode
from handrail.rail import Handrail


def run(options: Namespace) -> int:
    """Revokes a grant, or closes a folder."""
    kept = found_grant(options)
    workspace = options.workspace or kept.workspace
    if workspace is None:
        raise Stop("which workspace it belongs to was not noted. Nothing was revoked. Name it with --workspace.")
    granted = kept.granted
    with Handrail(workspace, session=granted.session_id, settings=loaded_for(options, None, workspace)) as rail:
        if isinstance(granted, OpenedFolder):
            rail.close_folder(granted.path)
        else:
            rail.revoke(granted.id)
    if options.json:
        answer_json(encode({"schema": "handrail.approvals/1", "revoked": grant_id(kept)}))
    else:
        answer(f"revoked: {one_line(grant_name(kept))} asks again\n")
    return OK
