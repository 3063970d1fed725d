"""The dialect of Codex: a shell with a patch tool."""

import re
from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, DialectTool, Surface
from handrail.dialects.parameters import may, need, rows
from handrail.dialects.render import add_notes, ask_questions, drop_none, list_answers, list_notes, list_patched_files
from handrail.protocol.digest import sha256
from handrail.protocol.errors import ToolError

_WRAPPED = re.compile(r"\s*apply_patch\s+<<\s*(['\"]?)(\w+)\1\n(.*)\n\2\s*", re.DOTALL)
"""A patch that was sent to the shell."""
_STATUS = {"pending": "pending", "in_progress": "active", "completed": "done"}
_OPTION = rows(label=need(str), description=need(str))


def _number(process_id: str) -> int:
    """Codex names processes by numbers."""
    return int(sha256(process_id.encode()).hexdigest()[:6], 16)


def _find_process(number: float, surface: Surface) -> str:
    for process in surface.list_processes():
        if _number(process.id) == int(number):
            return process.id
    raise ToolError("PROCESS_NOT_FOUND", f"Unknown process id {int(number)}")


def _execute(args: Any, surface: Surface) -> Canonical:
    if args.tty:
        raise ToolError("UNAVAILABLE", "tty: commands have no terminal of their own here. Nothing was run.")
    if found := _WRAPPED.fullmatch(args.cmd):
        return "apply_patch", {"patch": found[3]}
    cwd = surface.to_relative(args.workdir) if args.workdir else "."
    return "exec", {"command": args.cmd, "cwd": cwd, "yieldMs": _clamp(args.yield_time_ms, 250, 30_000)}


def _clamp(value: float, least: int, most: int) -> int:
    return int(max(least, min(value, most)))


def _write(args: Any, surface: Surface) -> Canonical:
    process_id = _find_process(args.session_id, surface)
    if args.chars:
        return "process", {"action": "write", "sessionId": process_id, "data": args.chars}
    surface.wait_for_end(process_id, _clamp(args.yield_time_ms or 5_000, 5_000, 300_000))
    return "process", {"action": "poll", "sessionId": process_id}


def _poll_after_write(one: Answered) -> Canonical | None:
    if not one.args.chars:
        return None
    process_id = one.data.process.id
    one.surface.wait_for_end(process_id, _clamp(one.args.yield_time_ms or 250, 250, 30_000))
    return "process", {"action": "poll", "sessionId": process_id}


def _show_command(one: Answered) -> tuple[str, Any]:
    if one.result.name == "apply_patch":
        return _show_patch(one)
    data = one.data
    process = getattr(data, "process", None)
    if process is not None:
        running = process.id if process.state == "running" else None
        code = process.exit_code
    else:
        running, code = data.session_id, data.exit_code
    seconds = (one.result.duration_ms + (one.first.duration_ms if one.first else 0)) / 1000
    output = data.output or ""
    shown = add_notes(_cut(output, one.args.max_output_tokens), _list_ignored(one))
    state = f"Process running with session ID {_number(running)}" if running else f"Process exited with code {code}"
    tokens = len(output) // 4
    counted = (f"Original token count: {tokens}",) if tokens > one.args.max_output_tokens else ()
    shape: dict[str, Any] = drop_none(
        wall_time_seconds=round(seconds, 4),
        output=shown,
        exit_code=None if running else code,
        session_id=_number(running) if running else None,
        original_token_count=tokens if counted else None,
    )
    return "\n".join((f"Wall time: {seconds:.4f} seconds", state, *counted, "Output:", shown)), shape


def _list_ignored(one: Answered) -> list[str]:
    ignored = [name for name in ("shell", "login", "prefix_rule") if getattr(one.args, name, None)]
    notes = [f"{name} was ignored: commands run in bash." for name in ignored[:1]]
    if getattr(one.args, "sandbox_permissions", "use_default") != "use_default":
        notes.append("The command ran in the sandbox: only policy and the person decide about it.")
    return [*notes, *list_notes(one.result)]


def _cut(output: str, tokens: float) -> str:
    most = int(tokens) * 4
    if len(output) <= most:
        return output
    return f"{output[: most // 2]}\n… {len(output) - most} characters truncated …\n{output[len(output) - most // 2 :]}"


def _show_patch(one: Answered) -> tuple[str, str]:
    text = add_notes(list_patched_files(one), list_notes(one.result))
    return text, text


def _show_picture(one: Answered) -> tuple[str, dict[str, Any]]:
    if not one.result.attachments:
        raise AssertionError("read shows pictures only")
    picture = one.result.attachments[0]
    url = f"data:{picture.mime};base64,{picture.content}"
    return one.content, {"image_url": url, "detail": one.args.detail}


def _show_reply(one: Answered) -> tuple[str, dict[str, Any]]:
    answers = zip(one.args.questions, list_answers(one, one.args.questions), strict=True)
    shape = {"answers": {asked.id: {"answers": reply} for asked, reply in answers}}
    return one.content, shape


def _plan(args: Any, _: Surface) -> Canonical:
    if sum(step.status == "in_progress" for step in args.plan) > 1:
        raise ToolError("INVALID_ARGUMENT", "failed to parse function arguments: at most one step is in_progress")
    return "todo", {"items": [{"text": step.step, "status": _STATUS[step.status]} for step in args.plan]}


def _render(one: Answered, shown: Any) -> DialectAnswer:
    error = one.result.error
    if error is None:
        text, shape = shown or (one.content, one.content)
        return DialectAnswer(text, shape)
    text, name = error.message, one.tool.name
    if error.code == "PERMISSION_DENIED":
        what = "patch" if one.result.name == "apply_patch" or name == "apply_patch" else "exec command"
        text = f"{what} rejected by user: {text}"
    elif name == "apply_patch" and one.args is not None:
        text = f"apply_patch verification failed: {text}"
    elif error.code == "TIMEOUT" and one.content != text:
        text = one.content
    text = add_notes(text, list_notes(one.result))
    return DialectAnswer(text, text)


_OUTPUT = {
    "yield_time_ms": may(float, 10_000, "Milliseconds to wait for output before the command runs on."),
    "max_output_tokens": may(float, 10_000, "Most tokens of output to return.", ge=0),
}

DIALECT = Dialect(
    name="codex",
    follows="343074d4 (2026-08-22)",
    parameters={"command": "cmd", "cwd": "workdir", "yieldMs": "yield_time_ms", "sessionId": "session_id"},
    unknown="unsupported call: {name}",
    invalid=lambda _, texts: f"failed to parse function arguments: {'. '.join(texts)}",
    tools=(
        DialectTool(
            name="exec_command",
            about="Runs a command in a shell and returns its output, or a session ID if it is still running.",
            params={
                "cmd": need(str, "Shell command to execute.", min_length=1),
                "workdir": may(str, None, "Folder to run the command in; the workspace if not given."),
                "shell": may(str, None, "Ignored: commands run in bash."),
                "login": may(bool, False, "Ignored: login shells are not supported."),
                "tty": may(bool, False, "Not available."),
                **_OUTPUT,
                "sandbox_permissions": may(
                    "use_default | require_escalated | with_additional_permissions",
                    "use_default",
                    "A request only: policy and the person decide.",
                ),
                "justification": may(str, None, "Why the command needs more permissions."),
                "prefix_rule": may(tuple[str, ...], None, "A rule that would allow similar commands."),
                "additional_permissions": may(dict[str, Any], None, "Permissions that the command asks for."),
                "environment_id": may(str, None, "Ignored: there is one environment."),
            },
            to=("exec", "apply_patch"),
            call=_execute,
            show=_show_command,
        ),
        DialectTool(
            name="write_stdin",
            about="Writes characters to a running process, or polls it, and returns its recent output.",
            params={
                "session_id": need(float, "The session ID that exec_command returned."),
                "chars": may(str, "", "Characters to write; empty polls."),
                "yield_time_ms": may(float, None, "Milliseconds to wait for output."),
                "max_output_tokens": may(float, 10_000, "Most tokens of output to return.", ge=0),
            },
            to=("process",),
            call=_write,
            then=_poll_after_write,
            show=_show_command,
        ),
        DialectTool(
            name="apply_patch",
            about="Changes files by a patch: *** Begin Patch … *** End Patch.",
            params={"input": need(str, "The entire contents of the patch.")},
            to=("apply_patch",),
            call=lambda args, _: ("apply_patch", {"patch": _strip_heredoc(args.input)}),
            show=_show_patch,
            free_text="input",
        ),
        DialectTool(
            name="update_plan",
            about="Updates the task plan. At most one step can be in_progress at a time.",
            params={
                "plan": need(
                    rows(step=need(str), status=need("pending | in_progress | completed")), "The list of steps."
                ),
                "explanation": may(str, None, "Why the plan changed."),
            },
            to=("todo",),
            call=_plan,
            show=lambda _: ("Plan updated", "Plan updated"),
        ),
        DialectTool(
            name="view_image",
            about="View a local image.",
            params={"path": need(str, "Path of the image."), "detail": may("high | original", "high", "Its detail.")},
            to=("read",),
            call=lambda args, _: ("read", {"path": args.path}),
            show=lambda one: _show_picture(one) if one.result.attachments else (one.content, one.content),
        ),
        DialectTool(
            name="request_user_input",
            about="Asks the person one to three questions and waits for the answers.",
            params={
                "questions": need(
                    rows(id=need(str), header=need(str, max_length=12), question=need(str), options=need(_OPTION)),
                    "The questions.",
                    min_length=1,
                    max_length=3,
                )
            },
            to=("question",),
            call=lambda args, _: ("question", ask_questions(args.questions)),
            show=_show_reply,
            on_request=True,
        ),
        DialectTool(
            name="request_permissions",
            about="Requests more permissions.",
            params={"permissions": need(dict[str, Any]), "reason": may(str)},
            to=(),
            lacks="each call asks for the permission that it needs",
        ),
    ),
    render=_render,
)


def _strip_heredoc(patch: str) -> str:
    found = _WRAPPED.fullmatch(patch)
    return found[3] if found else patch.strip() + "\n"
