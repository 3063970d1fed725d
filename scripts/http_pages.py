"""The page of the HTTP API, made from its table of routes and its messages."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from handrail.server import wire
from handrail.server.routes import PARAMETERS, ROUTES, Route

_HEADINGS = {
    "info": "Server",
    "tasks": "Tasks",
    "inbox": "Approvals",
    "requests": "Approvals",
    "questions": "Approvals",
    "grants": "Approvals",
    "changes": "Changes",
    "redo": "Changes",
    "processes": "Processes",
    "audit": "Audit",
    "policy": "Policy",
    "tools": "Tools",
    "call": "Tools",
    "settings": "Server",
    "schema": "Server",
    "openapi.json": "Server",
}
_TYPES = (
    (r"Annotated\[(\w+),.*?\)\]", r"\1"),
    (r"(?:Mapping|dict)\[str, Any\]", "object"),
    (r"\b(?:Text|Name|str)\b", "string"),
    (r"\b(?:int|float)\b", "number"),
    (r"\bbool\b", "boolean"),
    (r"\bLiteral\[False\]", "false"),
    (r"\bNone\b", "null"),
    (r"\b(?:Any|Json)\b", "any"),
)
"""Python's names of types, and those of JSON."""
_LITERAL = re.compile(r"Literal\[(.*?)\]")
_CLOSINGS = {
    "UNAUTHORIZED": "The token is missing, wrong or removed.",
    "FORBIDDEN": "The caller may not do this.",
    "NOT_FOUND": "There is no such task.",
    "SLOW": "The client did not read for too long. It may resume after its last event.",
    "TOO_MANY": "The caller has too many open streams.",
    "RESTARTING": "The server ends. The client may resume after its last event.",
}


def render_http_api(note: str) -> Iterator[str]:
    yield from ("# HTTP API", note)
    yield (
        "[Use the HTTP API](../how-to/use-the-http-api.md) has examples. Every request needs a token:\n"
        "`Authorization: Bearer TOKEN`. A body is JSON. A response with a status from 400 has an\n"
        "[ApiError](#apierror). `GET /api/openapi.json` is this API as OpenAPI 3.1, and `GET /api/schema` has\n"
        "the JSON Schema of all events, requests and results."
    )
    groups: dict[str, list[Route]] = {}
    for route in ROUTES:
        groups.setdefault(_HEADINGS[route.path.split("/")[2]], []).append(route)
    for heading, routes in groups.items():
        yield f"## {heading}"
        yield _table(("request", "role", "body", "answer", "effect"), map(_build_row, routes))
    yield "## Query parameters"
    rows = (
        (f"`{name}`", one.summary, "" if one.default is None else f"`{one.default}`")
        for name, one in PARAMETERS.items()
    )
    yield _table(("parameter", "meaning", "default"), rows)
    yield "## WebSocket"
    yield (
        "`/ws/{task}?after=N` sends the events of a task after number `N`, first the stored ones, then each new\n"
        "one. A frame is one JSON object, and its `type` names it. The client may send `answer`, `reply`, `prompt`\n"
        "and `cancel`. These need the role operator. The server repeats the `id` of the frame in `done` or `error`."
    )
    closings = ((str(getattr(wire.Closing, name)), meaning) for name, meaning in _CLOSINGS.items())
    yield _table(("close code", "meaning"), closings)
    yield "## Messages"
    yield (
        "A field without a default is required. An absent field has its default. Types that are not on this page are\n"
        "in [the protocol](protocol.md)."
    )
    yield _table(("type", "values"), _list_names())
    for node in ast.parse(inspect.getsource(wire)).body:
        if isinstance(node, ast.ClassDef) and node.name != "Closing":
            yield from _render_message(node)


def _build_row(route: Route) -> tuple[str, ...]:
    query = f" ({', '.join(f'`{name}`' for name in route.query)})" if route.query else ""
    return f"`{route.method} {route.path}`{query}", route.role, _link(route.body), _link(route.answer), route.summary


def _link(kind: Any) -> str:
    name: str = getattr(kind, "__name__", "")
    return f"[{name}](#{name.lower()})" if hasattr(wire, name) else "object" if kind is not None else ""


def _list_names() -> Iterator[tuple[str, str]]:
    """The names of types that are a choice of texts."""
    for node in ast.parse(inspect.getsource(wire)).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and "Literal[" in ast.unparse(node):
            yield f"`{node.targets[0].id}`", f"`{_name_type(node.value)}`"


def _render_message(node: ast.ClassDef) -> Iterator[str]:
    yield f"### {node.name}"
    tags = [word.value for word in node.keywords if word.arg == "tag"]
    if tags and isinstance(tags[0], ast.Constant):
        yield f'`type` is `"{tags[0].value}"`.'
    if text := ast.get_docstring(node):
        yield " ".join(text.split())
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id != "Wire":
            yield f"The message also has the fields of [{base.id}](#{base.id.lower()})."
    rows: list[tuple[str, str, str, str]] = []
    for one, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            has_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = " ".join(str(after.value.value).split()) if has_text else ""  # pyright: ignore
            rows.append((f"`{_to_camel(one.target.id)}`", f"`{_name_type(one.annotation)}`", _name_default(one), text))
    if rows:
        yield _table(("field", "type", "default", "meaning"), rows)


def _name_type(annotation: ast.expr) -> str:
    text = re.sub(r"tuple\[(.*?), \.\.\.\]", r"[\1]", ast.unparse(annotation))
    for pattern, name in _TYPES:
        text = re.sub(pattern, name, text)
    return _LITERAL.sub(lambda found: found[1].replace("'", '"').replace(", ", " | "), text)


def _name_default(field: ast.AnnAssign) -> str:
    if field.value is None:
        return ""
    names = {"None": "null", "True": "true", "False": "false", "()": "[]"}
    text = ast.unparse(field.value)
    return f"`{names.get(text, '{}' if text.startswith('field') else text)}`".replace("'", '"')


def _to_camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)
