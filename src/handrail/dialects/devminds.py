"""The dialect of DevMinds: two tools in the restricted profile."""

import shlex
from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, DialectTool, Surface
from handrail.dialects.parameters import may, need, record
from handrail.dialects.render import drop_none, list_extras
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import encode

_FOLDERS = (".minds", ".tasklogs")


def _join_path(path: str | tuple[str, ...]) -> str:
    """A path below `.minds`, or below the folder that its first part names."""
    parts = path.split("/") if isinstance(path, str) else list(path)
    if not parts or any(part in {"", ".", ".."} or "/" in part for part in parts):
        raise ToolError(
            "POLICY_DENIED", "path: parts are names without /, and none is empty, . or ..; nothing was done"
        )
    return "/".join(parts if parts[0] in _FOLDERS else (_FOLDERS[0], *parts))


def _use_file(args: Any, _: Surface) -> Canonical:
    path = _join_path(args.path)
    if args.op == "read":
        if args.content is not None:
            raise ToolError("INVALID_ARGUMENT", "workspace.fs: content is for write and append only")
        return "read", {"path": path}
    if args.content is None:
        raise ToolError("INVALID_ARGUMENT", f"workspace.fs: content is required for {args.op}")
    return args.op, {"path": path, "content": args.content}


def _show_file(one: Answered) -> dict[str, Any]:
    data = one.data
    if one.args.op == "read":
        mtime = data.mtime.isoformat().replace("+00:00", "Z") if data.mtime is not None else None
        return {"text": one.content, "meta": {"mtime": mtime, "size": data.size}}
    size = data.bytes if one.args.op == "append" else data.size
    return {"path": data.path, "bytes": size, "summary": one.result.summary}


def _run(args: Any, _: Surface) -> Canonical:
    return "exec", drop_none(command=shlex.join([*args.cmd.split(), *args.args]), cwd=args.cwd)


def _show_command(one: Answered) -> dict[str, Any]:
    data = one.data
    stdout = data.output if data.stdout is None else data.stdout
    return {"stdout": stdout, "stderr": data.stderr or "", "exitCode": data.exit_code}


def _ask(args: Any, _: Surface) -> Canonical:
    hint = [args.context.hint] if args.context is not None and args.context.hint else []
    return "question", {"question": "\n".join((args.question, *hint)), "options": [], "custom": True}


def _show_reply(one: Answered) -> dict[str, Any]:
    said = [*one.data.chosen, *([one.data.text] if one.data.text else [])]
    sender = {"agent": one.args.from_.agent, "taskId": one.args.from_.taskId}
    return {
        "to": sender,
        "answer": "\n".join(said),
        "inReplyTo": one.call_id,
        "metadata": {"choices": list(one.data.chosen)},
    }


def _render(one: Answered, shown: Any) -> DialectAnswer:
    result, error = one.result, one.result.error
    extras = list_extras(result)
    warnings: list[Any] = list(extras.pop("warnings", ()))
    if error is not None:
        code, message = error.code, error.message
        warnings.insert(0, {"code": code, "message": message} | drop_none(rule=extras.get("rule")))
        answer: dict[str, Any] = {"ok": False, "warnings": warnings}
    else:
        notes = {name: extras[name] for name in ("undo", "sandbox", "output", "limits") if name in extras}
        if result.meta.truncated:
            notes["truncated"] = True
        if notes:
            warnings.append({"code": "INFO", **notes})
        answer = {"ok": True, "result": shown if shown is not None else one.content}
        if warnings:
            answer["warnings"] = warnings
    return DialectAnswer(encode(answer).decode(), answer)


_PATH = str | tuple[str, ...]

DIALECT = Dialect(
    name="devminds",
    follows="tools migration (2025-10)",
    is_restricted=True,
    splits_streams=True,
    parameters={"command": "cmd"},
    unknown="unknown tool: {name}",
    tools=(
        DialectTool(
            name="workspace.fs",
            about="Read, write or append a file below .minds or .tasklogs.",
            params={
                "op": need("read | write | append", "What to do."),
                "path": need(_PATH, "The path, as a text or a list of names; below .minds if it names no folder."),
                "content": may(str, None, "The text; for write and append."),
            },
            to=("read", "write", "append"),
            call=_use_file,
            show=_show_file,
        ),
        DialectTool(
            name="workspace.shell",
            about="Run one of a few listed commands, such as ls, cat and git status.",
            params={
                "cmd": need(str, "The program, from the list.", min_length=1),
                "args": may(tuple[str, ...], (), "Its arguments."),
                "cwd": may(str, None, "The folder to run it in; the workspace if not given."),
            },
            to=("exec",),
            call=_run,
            show=_show_command,
        ),
        DialectTool(
            name="ask.request",
            about="Ask the person and wait for the answer.",
            params={
                "from": need(record(agent=need(str), taskId=need(str)), "Who asks."),
                "to": need(record(type=need("user | agent"), agent=may(str), taskId=may(str)), "Who is asked."),
                "question": need(str, "The question.", min_length=1, max_length=4_000),
                "context": may(record(refs=may(tuple[str, ...], ()), hint=may(str)), None, "What it is about."),
                "timeoutMs": may(int, 120_000, "Ignored: a question waits until it is answered."),
            },
            to=("question",),
            call=_ask,
            show=_show_reply,
            on_request=True,
        ),
    ),
    render=_render,
)
