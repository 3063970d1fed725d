"""The dialect of DevMinds: two tools in the restricted profile."""

import shlex
from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.render import drop_none, list_extras
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.protocol.errors import ToolError

_FOLDERS = (".minds", ".tasklogs")
_NOTES = ("undo", "sandbox", "output", "limits")
_TOOLS = """
Sender:
  agent* str
  taskId* str
Receiver:
  type* user|agent
  agent str
  taskId str
Context:
  refs str[]=[]
  hint str
workspace.fs = read write append: Read, write or append a file below .minds or .tasklogs.
  op* read|write|append                     # What to do.
  path* Path                                # A text or a list of names; below .minds unless it names a folder.
  content str -> content                    # The text; for write and append.
workspace.shell = exec: Run one of a few listed commands, such as ls, cat and git status.
  cmd* str len>=1                           # The program, from the list.
  args str[]=[]                             # Its arguments.
  cwd str -> cwd                            # The folder to run it in; the workspace if not given.
ask.request = question @request: Ask the person and wait for the answer.
  from* Sender                              # Who asks.
  to* Receiver                              # Who is asked.
  question* str len>=1 len<=4000            # The question.
  context Context                           # What it is about.
  timeoutMs int=120000                      # Ignored: a question waits until a person answers.
"""


def _join_path(path: str | tuple[str, ...]) -> str:
    """A path below `.minds`, or below the folder that its first part names."""
    parts = path.split("/") if isinstance(path, str) else list(path)
    if not parts or any(part in {"", ".", ".."} or "/" in part for part in parts):
        message = "path: parts are names without /, and none is empty, . or ..; nothing was done"
        raise ToolError("POLICY_DENIED", message)
    return "/".join(parts if parts[0] in _FOLDERS else (_FOLDERS[0], *parts))


def _use_file(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    path = _join_path(args.path)
    if args.op == "read" and given:
        raise ToolError("INVALID_ARGUMENT", "workspace.fs: content is for write and append only")
    if args.op != "read" and not given:
        raise ToolError("INVALID_ARGUMENT", f"workspace.fs: content is required for {args.op}")
    return args.op, {"path": path, **given}


def _show_file(one: Answered) -> Shown:
    data = one.data
    if one.args.op == "read":
        mtime = data.mtime.isoformat().replace("+00:00", "Z") if data.mtime is not None else None
        return Shown({"text": one.content, "meta": {"mtime": mtime, "size": data.size}})
    size = data.bytes if one.args.op == "append" else data.size
    return Shown({"path": data.path, "bytes": size, "summary": one.result.summary})


def _run(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    return "exec", {"command": shlex.join([*args.cmd.split(), *args.args]), **given}


def _show_command(one: Answered) -> Shown:
    data = one.data
    stdout = data.output if data.stdout is None else data.stdout
    return Shown({"stdout": stdout, "stderr": data.stderr or "", "exitCode": data.exit_code})


def _ask(args: Any, _: Any, __: Surface) -> Canonical:
    hint = [args.context.hint] if args.context is not None and args.context.hint else []
    return "question", {"question": "\n".join((args.question, *hint)), "options": [], "custom": True}


def _show_reply(one: Answered) -> Shown:
    answer = "\n".join((*one.data.chosen, *([one.data.text] if one.data.text else [])))
    reply = {"to": one.args.from_, "answer": answer, "inReplyTo": one.call_id}
    return Shown(reply | {"metadata": {"choices": one.data.chosen}})


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    extras = list_extras(one.result)
    warnings: list[Any] = list(extras.pop("warnings", ()))
    answer: dict[str, Any] = {"ok": not one.code}
    if one.code:
        warnings.insert(0, {"code": one.code, "message": one.message} | drop_none(rule=extras.get("rule")))
    else:
        answer["result"] = shown.data or one.content
        notes = {name: extras[name] for name in _NOTES if name in extras}
        if notes := notes | ({"truncated": True} if one.truncated else {}):
            warnings.append({"code": "INFO", **notes})
    if warnings:
        answer["warnings"] = warnings
    return DialectAnswer(None, answer)


DIALECT = Dialect(
    name="devminds",
    follows="tools migration (2025-10)",
    is_restricted=True,
    splits_streams=True,
    unknown="unknown tool: {name}",
    tools=parse_tools(
        _TOOLS,
        {
            "workspace.fs": Code(_use_file, _show_file),
            "workspace.shell": Code(_run, _show_command),
            "ask.request": Code(_ask, _show_reply),
        },
        Path=str | tuple[str, ...],
    ),
    render=_render,
)
