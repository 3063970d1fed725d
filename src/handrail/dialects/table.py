"""The notation of a table of foreign tools.

    Folder:
      workdir str=. -> cwd                              # The folder to run it in.
    bash = exec background=false +Folder: Runs a command.
      command* str len>=1 -> command                    # The command.
      timeout number=120000 -> timeoutMs[100..600000]   # Milliseconds after which it is stopped.
      text: Exit code {data.exit_code}
      data: command=args.command, exit=data.exit_code

A tool has the canonical tools that it becomes, constant arguments, and a description. `write@Write`: a call that became
write is answered as one of Write. `+Record` adds the parameters of a record. `@request`: it is offered only if the
settings enable its canonical tools. `@text=PARAMETER`: the parameter that a call without JSON is. `!`: it cannot be
offered, and the description says why. Several names with commas between them are alike.

A parameter has a kind, `=default`, limits, the canonical parameter behind `->`, and a description. `*`: required.
`# Ignored: why`: the parameter has no effect, and an answer says so. `# Refused: why`: a call with it is UNAVAILABLE.
Of two parameters for one canonical parameter the later one counts. So the older name stands first.
Targets: `!name` negates, `name+1` adds, `name[1..9]` clamps, `name[]` makes a list, `@purpose` is a field of the call.

Kinds: str, int, number, bool, object, choices such as `yes|no:canonical`, `"constant"`, records of the table, and lists
such as `str[]`. Rows of a record may stand in one line, with semicolons between them.

The answer has a `title`, a `text` with facts in braces, and `data`, or one fact as its `whole` data. Facts are
expressions with attributes of `Answered`, and with functions of `facts` or `render`. A line of four spaces continues
the last.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import NODEFAULT, Meta, Struct, defstruct
from msgspec.json import schema_components

from handrail.dialects import facts, render
from handrail.dialects.dialect import Answered, Code, Collect, DialectTool, Parameter, Show, Shown

_PARAMETER = re.compile(
    r"(?P<name>[-\w]+)(?P<required>\*)? (?P<kind>[^ =]+)(?:=(?P<default>\S+))?"
    r"(?P<limits>(?: (?:len)?[<>]=?\d+)*)(?: -> (?P<target>\S+))?(?: +# (?P<about>.+))?"
)
_TARGET = re.compile(r"(!)?(@?\w+)(?:([+-]\d)|\[(\d+)\.\.(\d+)\]|(\[\]))?")
_NOTE = re.compile(r"([-\w]+)\*? .*# (Ignored|Refused): (.+)")
_LIMITS = {">=": "ge", "<=": "le", ">": "gt", "len>=": "min_length", "len<=": "max_length"}
_KINDS: dict[str, Any] = {"str": str, "int": int, "number": float, "bool": bool, "object": dict[str, Any]}
_ANSWER = ("title: ", "text: ", "data: ", "whole: ")
_FACTS = frozenset(name for name in dir(Answered) if name[0] != "_")


class _Record(NamedTuple):
    """An object in the arguments."""

    params: Mapping[str, Parameter]
    kind: type[Struct]
    collect: Collect


def parse_tools(text: str, code: Mapping[str, Code] | None = None, **types: Any) -> tuple[DialectTool, ...]:
    """The tools of a table. `code` has what the table cannot say, by the name of the tool.

    `types` are other kinds of parameters: a type, or a text with choices.
    """
    known, tools = types, list[DialectTool]()
    for head, *lines in _split_blocks(text):
        names, is_tool, rest = head.partition(" = ")
        if is_tool:
            own = code or {}
            tools += [_parse_tool(name, rest, lines, known, own.get(name, Code())) for name in names.split(", ")]
        else:
            _add_record(head, lines, known)
    return tuple(tools)


def build_schema(text: str) -> dict[str, Any]:
    """The JSON Schema of the messages of a table of records: those whose name ends so. They may have more fields."""
    known: dict[str, Any] = {}
    for head, *lines in _split_blocks(text):
        _add_record(head, lines, known)
    messages = [record.kind for name, record in known.items() if name.endswith("Message")]
    shapes, records = schema_components(messages)
    for record in records.values():
        del record["additionalProperties"]
    return {"anyOf": list(shapes), "$defs": records}


def _split_blocks(text: str) -> list[list[str]]:
    joined = re.sub(r"\n {4,}", " ", text.strip())
    return [[line.strip() for line in block.splitlines()] for block in re.split(r"\n(?=\S)", joined)]


def _add_record(head: str, lines: list[str], known: dict[str, Any]) -> None:
    name, _, row = head.partition(":")
    params = _parse_parameters([part for line in (row, *lines) for part in line.strip().split("; ") if part], known)
    known[name] = _Record(params, build_struct(name, params), _build_collector(params, {}, known))


def _parse_tool(name: str, rest: str, lines: list[str], known: Mapping[str, Any], own: Code) -> DialectTool:
    words, _, about = rest.partition(": ")
    answer = [line for line in lines if line.startswith(_ANSWER)]
    rows = [line for line in lines if line not in answer]
    to, constants, flags = dict[str, str](), dict[str, Any](), dict[str, str]()
    for word in words.split():
        key, has_value, value = word.partition("=")
        if key[0] == "+":
            rows.insert(0, key)
        elif key[0] in "@!":
            flags[key] = value
        elif has_value:
            constants[key] = json.loads(value)
        else:
            canonical, _, answered = key.partition("@")
            to[canonical] = answered or name
    params = _parse_parameters(rows, known)
    notes: dict[str, dict[str, str]] = {"Ignored": {}, "Refused": {}}
    for found in filter(None, map(_NOTE.match, rows)):
        notes[found[2]][found[1]] = found[3]
    if "!" in flags:
        return DialectTool(name=name, lacks=about, params=params)
    return DialectTool(
        name=name,
        about=about,
        params=params,
        to=tuple(to),
        answered_as=to,
        collect=_build_collector(params, constants, known),
        code=own._replace(show=_build_show(own.show, answer)),
        free_text=flags.get("@text"),
        on_request="@request" in flags,
        ignored=notes["Ignored"],
        refused=notes["Refused"],
    )


def _parse_parameters(rows: Iterable[str], known: Mapping[str, Any]) -> dict[str, Parameter]:
    """`+Record` stands for the parameters of a record."""
    found = (known[row[1:]].params.values() if row[0] == "+" else (_parse_parameter(row, known),) for row in rows)
    return {param.name: param for params in found for param in params}


def _parse_parameter(line: str, known: Mapping[str, Any]) -> Parameter:
    row = _PARAMETER.fullmatch(line)
    if row is None:
        raise AssertionError(f"no row of a table: {line}")
    kind, form = _resolve_kind(row["kind"], known)
    found = re.findall(r"(\D+)(\d+)", row["limits"].replace(" ", ""))
    limits: dict[str, Any] = {_LIMITS[sign]: int(number) for sign, number in found}
    about = {"description": row["about"]} if row["about"] else {}
    default = None if row["default"] is None else _parse_default(row["default"])
    if row["required"]:
        kind, default = _annotate(kind, limits | about), NODEFAULT
    else:
        limited = _annotate(kind, limits)
        kind = _annotate(limited if default is not None else limited | None, about)
    move = None if row["target"] is None else _parse_target(row["target"], form)
    record = known.get(row["kind"].removesuffix("[]"))
    return Parameter(row["name"], kind, default, move, record.params if isinstance(record, _Record) else {})


def _annotate(kind: Any, limits: dict[str, Any]) -> Any:
    return Annotated[kind, Meta(**limits)] if limits else kind


def _parse_default(text: str) -> Any:
    """A default, which is JSON or a plain text."""
    if text == "[]":
        return ()
    return json.loads(text) if text[0] in '"0123456789' or text in {"true", "false"} else text


def _resolve_kind(text: str, known: Mapping[str, Any]) -> tuple[Any, str]:
    """The type, with the expression that makes its values canonical. `{}` stands for the value."""
    if text.endswith("[]"):
        item, form = _resolve_kind(text[:-2], known)
        return tuple[item, ...], "list({})" if form == "{}" else f"[{form.replace('{}', 'one')} for one in {{}}]"
    found = known.get(text, text)
    if isinstance(found, _Record):
        return found.kind, f"{text}.collect({{}})"
    if not isinstance(found, str):
        return found, "{}"
    if found[0] == '"':
        return Literal[found[1:-1]], "{}"
    if "|" in found:
        names = {own: canonical or own for own, _, canonical in (one.partition(":") for one in found.split("|"))}
        return Literal[tuple(names)], "{}" if names == dict(zip(names, names, strict=True)) else f"{names}[{{}}]"
    return _KINDS[found], "int({})" if found == "number" else "{}"


def _parse_target(text: str, form: str) -> tuple[str, str]:
    row = _TARGET.fullmatch(text)
    if row is None:
        raise AssertionError(f"no target of a parameter: {text}")
    negated, name, added, least, most, wraps = row.groups()
    if negated:
        return name, "not {}"
    if wraps:
        return name, "[{}]"
    if added:
        return name, f"int({{}}) {added}"
    return name, f"int(max({least}, min({{}}, {most})))" if least else form


def _build_collector(params: Mapping[str, Parameter], constants: dict[str, Any], known: Mapping[str, Any]) -> Collect:
    """Makes canonical arguments of typed ones, as one expression: the quickest way."""
    items = [f"{name!r}: {value!r}" for name, value in constants.items()]
    for param in params.values():
        if param.move is not None:
            (target, form), value = param.move, f"args.{_to_attribute(param.name)}"
            item = f"{target!r}: {form.replace('{}', value)}"
            items.append(item if param.default is not None else f"**({{{item}}} if {value} is not None else {{}})")
    return eval(f"lambda args: {{{', '.join(items)}}}", dict(known))  # noqa: S307  rows of our own tables


def build_struct(name: str, params: Mapping[str, Parameter]) -> type[Struct]:
    """The typed arguments. `-i` becomes the attribute `i`, `from` becomes `from_`."""
    names = {_to_attribute(param): param for param in params}
    fields = [
        (own, param.kind) if param.default is NODEFAULT else (own, param.kind, param.default)
        for own, param in zip(names, params.values(), strict=True)
    ]
    return defstruct(name, fields, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=names)


def list_renamed(params: Mapping[str, Parameter]) -> dict[str, str]:
    """The names of parameters by the canonical ones, also in records."""
    names = {param.move[0]: param.name for param in params.values() if param.move is not None}
    return {name: own for param in params.values() for name, own in list_renamed(param.within).items()} | names


def _to_attribute(param: str) -> str:
    name = param.lstrip("-").replace("-", "_")
    return f"{name}_" if iskeyword(name) else name


class _Facts(ast.NodeTransformer):
    """Makes facts attributes of the answered call. `dict(a=1)` becomes `{"a": 1}`, which is faster."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Attribute(ast.Name("one", node.ctx), node.id, node.ctx) if node.id in _FACTS else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not (isinstance(node.func, ast.Name) and node.func.id == "dict"):
            return self.generic_visit(node)
        keys: list[ast.expr | None] = [None if own.arg is None else ast.Constant(own.arg) for own in node.keywords]
        return ast.Dict(keys, [self.visit(own.value) for own in node.keywords])


def _build_show(own: Show | None, rows: Iterable[str]) -> Show | None:
    """The answer of the table, with what `own` says instead, as one function: the quickest way."""
    answer = {key: value for key, _, value in (row.partition(": ") for row in rows)}
    if not answer:
        return own
    title, text = (f"f{answer[key]!r}" if key in answer else "None" for key in ("title", "text"))
    data = answer.get("whole", f"dict({answer.get('data', '')})")
    if own is not None:
        said = "(said := own(one)).data"
        data = f"dict({answer['data']}, **{said})" if "data" in answer else said
        title, text = f"said.title or {title}", f"said.text or {text}"
    source = ast.parse(f"lambda one: Shown({data}, {title}, {text})", mode="eval")
    code = compile(ast.fix_missing_locations(_Facts().visit(source)), "<table>", "eval")
    return eval(code, {**vars(facts), **vars(render), "Shown": Shown, "own": own})  # noqa: S307  as above
