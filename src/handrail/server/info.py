"""What a client needs to know first: the server, its settings, the schema of its messages."""

from typing import Any

from handrail.protocol.schema import build_wire_schemas
from handrail.protocol.version import VERSION
from handrail.server.context import Request, list_modes
from handrail.server.wire import ServerInfo
from handrail.settings.model import list_settings


def get_info(request: Request) -> ServerInfo:
    options = request.server.options
    loaded = options.load_settings(options.resolve_workspace())
    return ServerInfo(
        version=VERSION,
        caller=request.caller,
        workspaces=options.workspaces,
        models=options.host.list_models(loaded),
        modes=list_modes(request.caller, loaded),
        direct_calls=options.direct_calls,
        dialect=options.dialect,
    )


def get_settings(request: Request) -> dict[str, Any]:
    options = request.server.options
    loaded = options.load_settings(options.resolve_workspace(request.query["workspace"]))
    fields = list_settings()
    settings = [
        {"key": key, "value": value, "source": loaded.sources[key],
         "help": fields[key].help, "allowed": fields[key].allowed}
        for key, value in loaded.settings.flatten().items()
    ]  # fmt: skip
    return {"settings": settings, "rules": loaded.rules, "notes": loaded.notes}


def get_schema(_request: Request) -> dict[str, Any]:
    return {"schema": "handrail.schema/1", "types": build_wire_schemas()}
