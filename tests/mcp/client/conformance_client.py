"""What the conformance suite runs as a client: a session of ours with the suite's server, whose tools are called.

The address of the server is the last argument. The suite may say by a variable what is to be called, and how.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from serving import Place

from handrail.runtime.foreign.source import ForeignTool, build_tool_name


def calls(tools: tuple[ForeignTool, ...]) -> list[tuple[str, dict[str, Any]]]:
    """What the suite wants to be called; else each tool with arguments that fit."""
    wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
    if wanted:
        return [(one["name"], without_nothing(one["arguments"])) for one in wanted]
    schemas = {tool.name: tool.input_schema for tool in tools}
    if "json_schema_echo" in schemas:  # it wants to see what was made of the other one's schema
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [(name, sample(schema)) for name, schema in schemas.items()]


def without_nothing(arguments: dict[str, Any]) -> dict[str, Any]:
    """What is null is left out: the tool's own schema does not allow it, so that a session would not send it."""
    return {name: value for name, value in arguments.items() if value is not None}


def sample(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that fit a simple schema."""
    values = {"number": 5, "integer": 5, "string": "text", "boolean": True}
    return {name: values.get(one.get("type")) for name, one in schema.get("properties", {}).items()}


def main(url: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        found = place.found(f'[mcp.servers.suite]\nurl = "{url}"\ntimeout = "20s"\n')
        with place.opened(found) as rail:
            offered = {spec.name for spec in rail.specs()}  # not one whose schema would have to be fetched
            tools = tuple(one for one in found.sources[0].listed() if build_tool_name("suite", one.name) in offered)
            results = [rail.call(build_tool_name("suite", name), arguments) for name, arguments in calls(tools)]
            for result in results:
                sys.stderr.write(f"{result.name}: {result.content}\n")
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
