"""The dialect of Codex: a shell with a patch tool."""

import re
import shlex
from posixpath import join, normpath
from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.render import add_notes, drop_none, list_notes
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import ask_questions
from handrail.protocol.digest import sha256
from handrail.protocol.errors import ToolError
from handrail.protocol.text import truncate_middle

_CD = r"\s*(?:cd\s+('(?!-)[^'\n]*'|\"(?!-)[^\"\n$`\\]*\"|(?![-~])[^\s;&|'\"$`\\]+)\s*&&\s*)?"
"""A folder that is the same for the shell: it has no variable, and is no option and no home folder."""
_WRAPPED = re.compile(_CD + r"apply_patch\s+<<\s*(['\"]?)(\w+)\2\n(.*)\n\3\s*", re.DOTALL)
"""A patch that was sent to the shell, maybe for another folder."""
_SHELL_PATCH = re.compile(r"\s*(cd\s[^\n]*?(&&|;)\s*)?(apply_patch|applypatch)\b")
_FILE = re.compile(r"(?m)^(\*\*\* (?:Add File|Update File|Delete File|Move to): )(?!/)(.+)$")
_TOOLS = """
Step: step* str -> text; status* pending|in_progress:active|completed:done -> status
Option: label* str; description* str
Question: id* str; header* str len<=12; question* str; options* Option[]
exec_command = exec apply_patch@apply_patch: Runs a command and returns its output, or a session ID if it still runs.
  cmd* str len>=1 -> command                    # Shell command to execute.
  workdir str -> cwd                            # Folder to run the command in; the workspace if not given.
  shell str                                     # Ignored: commands run in bash.
  login bool=true                               # Ignored: commands run in no login shell.
  tty bool=false                                # Refused: commands have no terminal of their own here
  yield_time_ms number=10000 -> yieldMs[250..30000]  # Milliseconds to wait before the command runs on.
  max_output_tokens number=10000 >=0            # Most tokens of output to return.
  sandbox_permissions Sandbox=use_default       # A request only: policy and the person decide.
  justification str -> @purpose                 # Why the command needs more permissions.
  prefix_rule str[]                             # A rule that would allow similar commands.
  additional_permissions object                 # Ignored: a person or the settings open hosts and folders.
  environment_id str                            # Ignored: there is one environment.
write_stdin = process: Writes characters to a running process, or polls it, and returns its recent output.
  session_id* number                            # The session ID that exec_command returned.
  chars str=""                                  # Characters to write; empty polls.
  yield_time_ms number                          # Milliseconds to wait for output.
  max_output_tokens number=10000 >=0            # Most tokens of output to return.
apply_patch = apply_patch @text=input: Changes files by a patch: *** Begin Patch … *** End Patch.
  input* str                                    # The entire contents of the patch.
  text: {add_notes(list_patched_files(one), list_notes(result))}
update_plan = todo: Updates the task plan. At most one step can be in_progress at a time.
  plan* Step[] -> items                         # The list of steps.
  explanation str                               # Why the plan changed.
  text: Plan updated
view_image = read: View a local image.
  path* str -> path                             # Path of the image.
  detail high|original=high                     # Its detail.
request_user_input = question @request: Asks the person one to three questions and waits for the answers.
  questions* Question[] len>=1 len<=3           # The questions.
  data: answers={asked.id: dict(answers=reply) for asked, reply in zip(args.questions, list_answers(one))}
list_mcp_resources, list_mcp_resource_templates, read_mcp_resource = !: a host can bring a tool of this name
tool_search, get_context_remaining, new_context, web_search = !: a host can bring a tool of this name
spawn_agent, wait_agent, send_message, list_agents, interrupt_agent = !: a host can bring a tool of this name
request_permissions = !: each call asks for the permission that it needs
  permissions* object
  reason str
"""


def _number(process_id: str) -> int:
    """Codex names processes by numbers."""
    return int(sha256(process_id.encode()).hexdigest()[:6], 16)


def _find_process(number: float, surface: Surface) -> str:
    for process_id in surface.list_process_ids():
        if _number(process_id) == int(number):
            return process_id
    raise ToolError("PROCESS_NOT_FOUND", f"Unknown process id {int(number)}")


def _execute(args: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    asked = _ask_person(args)
    cwd = surface.to_relative(args.workdir) if args.workdir else "."
    if (patch := _WRAPPED.fullmatch(args.cmd)) is not None:
        folder = normpath(surface.to_relative(join(cwd, (patch[1] or "").strip("'\""))))
        text = _FILE.sub(lambda row: row[1] + (row[2] if folder == "." else join(folder, row[2])), patch[4])
        return "apply_patch", {"patch": text} | asked
    if _SHELL_PATCH.match(args.cmd):
        text = "cmd: a patch is a call of apply_patch, or the whole command: apply_patch <<'EOF'. Nothing was run."
        raise ToolError("INVALID_ARGUMENT", text)
    return "exec", given | asked | {"cwd": cwd}


def _ask_person(args: Any) -> dict[str, Any]:
    """Lets a person decide about a call that asks for more permissions. The proposed rule is for them to read, beside
    the grants that policy offers for such a command."""
    if args.sandbox_permissions == "use_default":
        return {}
    rule = f"proposes a grant for: {shlex.join(args.prefix_rule)}" if args.prefix_rule else ""
    return {"@confirm": "unless-granted", "@purpose": "; ".join(filter(None, (args.justification, rule))) or None}


def _patch(args: Any, _: Any, __: Surface) -> Canonical:
    found = _WRAPPED.fullmatch(args.input)
    return "apply_patch", {"patch": found[4] if found else args.input.strip() + "\n"}


def _wait(surface: Surface, process_id: str, milliseconds: float | None, least: int, most: int) -> None:
    surface.wait_for_end(process_id, max(least, min(milliseconds or least, most)))


def _write(args: Any, _: Any, surface: Surface) -> Canonical:
    process_id = _find_process(args.session_id, surface)
    if args.chars:
        return "process", {"action": "write", "sessionId": process_id, "data": args.chars}
    _wait(surface, process_id, args.yield_time_ms, 5_000, 300_000)
    return "process", {"action": "poll", "sessionId": process_id}


def _poll_after_write(one: Answered) -> Canonical | None:
    if not one.args.chars:
        return None
    process_id = one.data.process.id
    _wait(one.surface, process_id, one.args.yield_time_ms, 250, 30_000)
    return "process", {"action": "poll", "sessionId": process_id}


def _show_command(one: Answered) -> Shown:
    data, process = one.data, getattr(one.data, "process", None)
    if process is not None:
        running, code = process.id if process.state == "running" else None, process.exit_code
    else:
        running, code = data.session_id, data.exit_code
    seconds = one.result.duration_ms / 1000
    output, most = data.output or "", int(one.args.max_output_tokens)
    shown = add_notes(_cut(output, most * 4), _list_notes(one))
    state = f"Process running with session ID {_number(running)}" if running else f"Process exited with code {code}"
    counted = (f"Original token count: {len(output) // 4}",) if len(output) // 4 > most else ()
    shape = drop_none(
        wall_time_seconds=round(seconds, 4),
        output=shown,
        exit_code=None if running else code,
        session_id=_number(running) if running else None,
        original_token_count=len(output) // 4 if counted else None,
    )
    return Shown(shape, text="\n".join((f"Wall time: {seconds:.4f} seconds", state, *counted, "Output:", shown)))


def _list_notes(one: Answered) -> list[str]:
    is_asked = getattr(one.args, "sandbox_permissions", "use_default") != "use_default"
    notes = ["The command was approved and ran in the sandbox."] if is_asked else []
    return [*list_notes(one.result), *notes]


def _cut(output: str, most: int) -> str:
    return output if len(output) <= most else truncate_middle(output, most, "\n… {} characters truncated …\n")


def _show_picture(one: Answered) -> Shown:
    if not one.is_picture:
        raise ToolError("INVALID_ARGUMENT", f"unable to process image: {one.args.path} has another format.")
    picture = one.result.attachments[0]
    return Shown({"image_url": f"data:{picture.mime};base64,{picture.content}", "detail": one.args.detail})


def _plan(args: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    if surface.mode == "plan":
        raise ToolError("UNAVAILABLE", "update_plan is a checklist for work, and is not allowed in plan mode.")
    if sum(step.status == "in_progress" for step in args.plan) > 1:
        raise ToolError("INVALID_ARGUMENT", "failed to parse function arguments: at most one step is in_progress")
    return "todo", given


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    if not one.code:
        text = one.content if shown.text is None else shown.text
        return DialectAnswer(text, shown.data or text)
    text, is_patch = one.message, one.tool.name == "apply_patch"
    if one.code == "PERMISSION_DENIED":
        text = f"{'patch' if is_patch or one.result.name == 'apply_patch' else 'exec command'} rejected by user: {text}"
    elif is_patch and one.args is not None:
        text = f"apply_patch verification failed: {text}"
    elif one.code == "TIMEOUT":
        text = one.content
    text = add_notes(text, list_notes(one.result))
    return DialectAnswer(text, text)


DIALECT = Dialect(
    name="codex",
    follows="343074d4 (2026-08-22)",
    unknown="unsupported call: {name}",
    invalid=lambda _, texts: f"failed to parse function arguments: {'. '.join(texts)}",
    tools=parse_tools(
        _TOOLS,
        {
            "exec_command": Code(_execute, _show_command),
            "write_stdin": Code(_write, _show_command, _poll_after_write),
            "apply_patch": Code(_patch),
            "update_plan": Code(_plan),
            "view_image": Code(show=_show_picture),
            "request_user_input": Code(ask_questions),
        },
        Sandbox="use_default|require_escalated|with_additional_permissions",
    ),
    render=_render,
)
