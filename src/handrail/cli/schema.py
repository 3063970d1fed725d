"""schema: the wire contract as JSON Schema."""

from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.exits import OK
from handrail.cli.files import OutFolder
from handrail.cli.output import print_json, print_out
from handrail.protocol.schema import DIALECT, build_flat_schema, build_wire_schemas, read_wire_samples
from handrail.protocol.wire import Json, encode
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings


def run(options: Namespace) -> int:
    """Prints all schemas in one object, or writes each to its file."""
    types, tools = build_wire_schemas(), _tool_schemas()
    if options.out is None:
        print_json(_pretty({"schema": "handrail.schema/1", "types": types, "tools": tools}))
        return OK
    files = {f"{name}.schema.json": schema for name, schema in types.items()}
    files |= {f"samples/{name}.json": sample for name, sample in read_wire_samples().items()}
    files |= {f"tools/{name}.schema.json": schema for name, schema in tools.items()}
    folder = OutFolder(options.out)
    for name, content in files.items():
        folder.write(name, _pretty(content) + b"\n")
    if not options.quiet:
        print_out(f"{len(files)} files written to {options.out}\n")
    return OK


def _tool_schemas() -> dict[str, dict[str, Any]]:
    """The arguments of handrail's own tools, whatever the settings here are."""
    specs = [tool.spec for tool in build_tool_set(Settings()).tools]
    return {spec.name: {"$schema": DIALECT, "title": spec.name, **build_flat_schema(spec.arguments)} for spec in specs}


def _pretty(value: Json) -> bytes:
    return msgspec.json.format(encode(value), indent=2)
