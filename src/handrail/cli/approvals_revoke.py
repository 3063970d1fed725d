"""approvals revoke: ends what was granted, at once and for every process."""

from argparse import Namespace

from handrail.api import Handrail
from handrail.cli.exits import OK, CommandFailed
from handrail.cli.inbox import build_grant_id, describe_grant, resolve_grant
from handrail.cli.output import print_json, print_out
from handrail.cli.preferences import load_settings
from handrail.protocol.permissions import OpenedFolder
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Revokes a grant, or closes a folder."""
    kept = resolve_grant(options)
    workspace = options.workspace or kept.workspace
    if workspace is None:
        raise CommandFailed(
            "which workspace it belongs to was not noted. Nothing was revoked. Name it with --workspace."
        )
    granted = kept.granted
    with Handrail(workspace, session=granted.session_id, settings=load_settings(options, None, workspace)) as rail:
        if isinstance(granted, OpenedFolder):
            rail.close_folder(granted.path)
        else:
            rail.revoke(granted.id)
    if options.json:
        print_json(encode({"schema": "handrail.approvals/1", "revoked": build_grant_id(kept)}))
    else:
        print_out(f"revoked: {to_one_line(describe_grant(kept))} asks again\n")
    return OK
