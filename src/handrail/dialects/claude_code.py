"""The dialect of Claude Code."""

from typing import Any

from msgspec import to_builtins

from handrail.dialects.claude_code_files import (
    edit,
    edit_notebook,
    grep,
    read,
    show_edit,
    show_glob,
    show_grep,
    show_notebook,
    show_read,
    show_write,
)
from handrail.dialects.claude_code_tasks import (
    create_task,
    find_task,
    list_tasks,
    show_created,
    show_task,
    show_tasks,
    show_todos,
    show_updated,
    update_task,
    write_todos,
)
from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, DialectTool, Surface, declare
from handrail.dialects.parameters import may, need, rows
from handrail.dialects.render import ask_questions, drop_none, list_answers, list_extras, list_notes
from handrail.protocol.errors import ToolError


def _run(args: Any, _: Surface) -> Canonical:
    if args.run_in_background:
        return "exec", {"command": args.command, "background": True}
    timeout = int(max(100, min(args.timeout, 600_000)))
    return "exec", {"command": args.command, "timeoutMs": timeout}


def _show_command(one: Answered) -> tuple[str, dict[str, Any]]:
    data = one.data
    if data.session_id is not None:
        twin = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": data.session_id}
        return f"Command running in background with ID: {data.session_id}", twin
    stdout = data.output if data.stdout is None else data.stdout
    stderr = data.stderr or ""
    twin: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "interrupted": data.exit_code is None}
    twin |= drop_none(returnCodeInterpretation=data.meaning, persistedOutputPath=one.result.meta.output)
    printed = "\n".join(filter(None, (stdout.rstrip("\n"), stderr.rstrip("\n"))))
    if data.exit_code:
        return f"Exit code {data.exit_code}\n{printed}".rstrip("\n"), twin | {"is_error": True}
    return printed or "(no output)", twin


def _poll(args: Any, surface: Surface) -> Canonical:
    if args.block is not False:
        surface.wait_for_end(args.task_id, min(args.timeout, 600_000))
    return "process", {"action": "poll", "sessionId": args.task_id}


def _show_poll(one: Answered) -> tuple[str, dict[str, Any]]:
    process, output = one.data.process, one.data.output or ""
    task = drop_none(
        task_id=process.id,
        task_type="local_bash",
        status="running" if process.state == "running" else "completed",
        description=process.command,
        output=output,
        exitCode=process.exit_code,
    )
    return one.content, {"retrieval_status": "success", "task": task}


def _stop(args: Any, _: Surface) -> Canonical:
    task = args.task_id or args.shell_id
    if task is None:
        raise ToolError("INVALID_ARGUMENT", "task_id is required")
    return "process", {"action": "kill", "sessionId": task}


def _show_stop(one: Answered) -> tuple[str, dict[str, Any]]:
    process = one.data.process
    message = f"Successfully stopped task: {process.id} ({process.command})"
    twin = {"message": message, "task_id": process.id, "task_type": "local_bash", "command": process.command}
    return message, twin


def _watch(args: Any, _: Surface) -> Canonical:
    if args.ws is not None or args.command is None:
        raise ToolError("UNAVAILABLE", "ws: Monitor watches commands only; give command. Nothing was run.")
    return "exec", {"command": args.command, "background": True}


def _show_reply(one: Answered) -> tuple[str, dict[str, Any]]:
    questions = one.args.questions
    replies = [", ".join(reply) for reply in list_answers(one, questions)]
    answers = {asked.question: reply for asked, reply in zip(questions, replies, strict=True)}
    said = ", ".join(f'"{question}"="{reply}"' for question, reply in answers.items())
    return f"User has answered your questions: {said}", {"questions": to_builtins(questions), "answers": answers}


def _look_up(args: Any, _: Surface) -> Canonical:
    tools = {"goToDefinition": "lsp_definition", "findReferences": "lsp_references", "hover": "lsp_hover"}
    name = tools.get(args.operation, "lsp_symbols")
    return name, {"path": args.filePath, "line": args.line - 1, "character": args.character - 1}


def _render(one: Answered, shown: Any) -> DialectAnswer:
    error = one.result.error
    extras = list_extras(one.result)
    if error is None:
        text, twin = shown or (one.content, {"content": one.content})
        text = "\n".join((text, *(f"[{note}]" for note in list_notes(one.result) if note not in text)))
    else:
        text, twin = (one.content if error.code == "TIMEOUT" else error.message), {"error": error.code}
    is_error = error is not None or bool(twin.pop("is_error", False))
    told: dict[str, Any] = {"type": "tool_result", "tool_use_id": one.call_id, "content": text}
    if is_error:
        told["is_error"] = True
    return DialectAnswer(text, {**told, "tool_use_result": {**twin, "meta": extras}})


_PATH = need(str, "The absolute path of the file.")
_OPTION = rows(label=need(str), description=need(str), preview=may(str))
_QUESTION = rows(
    question=need(str),
    header=need(str, max_length=12),
    options=need(_OPTION, min_length=2, max_length=4),
    multiSelect=may(bool, False),
)
_STATES = "pending | in_progress | completed"
_OPERATIONS = (
    "goToDefinition | findReferences | hover | documentSymbol | workspaceSymbol | goToImplementation"
    " | prepareCallHierarchy | incomingCalls | outgoingCalls"
)


DIALECT = Dialect(
    name="claude-code",
    follows="agent SDK 0.3.287",
    splits_streams=True,
    parameters={
        "oldText": "old_string",
        "newText": "new_string",
        "replaceAll": "replace_all",
        "filePattern": "glob",
        "maxResults": "head_limit",
        "contextLines": "context",
        "timeoutMs": "timeout",
        "sessionId": "task_id",
    },
    unknown="No such tool available: {name}",
    invalid=lambda name, texts: f"{name} failed due to the following issue(s): {'. '.join(texts)}",
    tools=(
        declare(
            "Read",
            "Reads a file. Lines are numbered; pictures, notebooks and PDF files can be read too.",
            "read",
            {
                "file_path": _PATH,
                "offset": may(float, None, "The first line, from 1."),
                "limit": may(float, 2_000, "The number of lines.", ge=1),
                "pages": may(str, None, 'Pages of a PDF file, such as "1-5".'),
            },
            read,
            show_read,
        ),
        declare(
            "Write",
            "Writes a file. It replaces an existing one.",
            "write",
            {"file_path": _PATH, "content": need(str, "The content of the file.")},
            lambda args, _: ("write", {"path": args.file_path, "content": args.content}),
            show_write,
        ),
        declare(
            "Edit",
            "Replaces an exact text in a file. It must be unique, unless replace_all is set.",
            "edit write",
            {
                "file_path": _PATH,
                "old_string": need(str, "The text to replace."),
                "new_string": need(str, "The text to replace it with."),
                "replace_all": may(bool, False, "Replace all occurrences."),
            },
            edit,
            show_edit,
        ),
        declare(
            "NotebookEdit",
            "Replaces, inserts or deletes a cell of a Jupyter notebook.",
            "write",
            {
                "notebook_path": need(str, "The absolute path of the notebook."),
                "new_source": need(str, "The new source of the cell."),
                "cell_id": may(str, None, "The cell; insert puts the new one after it, or at the start."),
                "cell_type": may("code | markdown", None, "The type of the cell; required for insert."),
                "edit_mode": may("replace | insert | delete", "replace", "What to do."),
            },
            edit_notebook,
            show_notebook,
        ),
        declare(
            "Glob",
            "Finds files by a glob, such as **/*.ts. The newest come first.",
            "find",
            {"pattern": need(str, "The glob.", min_length=1), "path": may(str, None, "The folder to search in.")},
            lambda args, _: ("find", drop_none(pattern=args.pattern, path=args.path)),
            show_glob,
        ),
        declare(
            "Grep",
            "Searches file contents by a regular expression (ripgrep).",
            "search_text",
            {
                "pattern": need(str, "The regular expression.", min_length=1),
                "path": may(str, None, "File or folder to search in."),
                "glob": may(str, None, "Glob of the files to search.", min_length=1),
                "output_mode": may("content | files_with_matches | count", "files_with_matches", "What to return."),
                "-B": may(float, None, "Lines before each match; for content.", ge=0),
                "-A": may(float, None, "Lines after each match; for content.", ge=0),
                "-C": may(float, None, "The same as context.", ge=0),
                "context": may(float, None, "Lines before and after each match; for content.", ge=0),
                "-n": may(bool, None, "Show line numbers; for content. On by default."),
                "-i": may(bool, None, "Ignore case."),
                "-o": may(bool, None, "Show only the matched parts; for content, without multiline."),
                "type": may(str, None, "File type to search: js, py, rust, go, java …"),
                "head_limit": may(float, 250, "Show the first N lines or entries; 0: all.", ge=0),
                "offset": may(float, 0, "Skip the first N lines or entries.", ge=0),
                "multiline": may(bool, False, "Let a match reach over line ends."),
            },
            grep,
            show_grep,
        ),
        declare(
            "Bash",
            "Runs a shell command in the workspace, in a sandbox.",
            "exec",
            {
                "command": need(str, "The command to run.", min_length=1),
                "timeout": may(float, 120_000, "Milliseconds after which it is stopped, at most 600000."),
                "description": may(str, None, "What the command does, in a few words."),
                "run_in_background": may(bool, False, "Return at once. TaskOutput reads the output."),
                "dangerouslyDisableSandbox": may(bool, False, "A request only: policy decides."),
            },
            _run,
            _show_command,
        ),
        declare(
            "TaskOutput",
            "Returns the new output of a background task.",
            "process",
            {
                "task_id": need(str, "The task."),
                "block": need(bool, "Whether to wait for its end."),
                "timeout": need(float, "Most milliseconds to wait.", ge=0),
            },
            _poll,
            _show_poll,
        ),
        declare(
            "TaskStop",
            "Stops a background task.",
            "process",
            {"task_id": may(str, None, "The task."), "shell_id": may(str, None, "Its older name.")},
            _stop,
            _show_stop,
        ),
        declare(
            "Monitor",
            "Runs a command in the background.",
            "exec",
            {
                "description": need(str, "What is watched."),
                "timeout_ms": may(float, 300_000, "Ignored: limits.idle ends it.", ge=1, le=3_600_000),
                "command": may(str, None, "The command."),
                "ws": may(dict[str, Any], None, "Not available."),
            },
            _watch,
            _show_command,
        ),
        declare(
            "TodoWrite",
            "Replaces the list of steps.",
            "todo",
            {
                "todos": need(
                    rows(content=need(str, min_length=1), status=need(_STATES), activeForm=need(str)), "The list."
                )
            },
            write_todos,
            show_todos,
        ),
        declare(
            "TaskCreate",
            "Adds a task to the list of steps.",
            "todo",
            {
                "subject": need(str, "A short title.", min_length=1),
                "description": need(str, "What is to be done."),
                "activeForm": may(str, None, "The title while it is being done."),
                "metadata": may(dict[str, Any], None, "Anything else."),
            },
            create_task,
            show_created,
        ),
        declare("TaskGet", "Returns a task.", "todo", {"taskId": need(str, "The task.")}, find_task, show_task),
        declare(
            "TaskUpdate",
            "Changes a task.",
            "todo",
            {
                "taskId": need(str, "The task."),
                "subject": may(str, None, "The new title.", min_length=1),
                "description": may(str, None, "The new description."),
                "activeForm": may(str, None, "The new title while it is being done."),
                "status": may(f"{_STATES} | deleted", None, "The new state."),
                "addBlocks": may(tuple[str, ...], None, "Tasks that wait for it."),
                "addBlockedBy": may(tuple[str, ...], None, "Tasks that it waits for."),
                "owner": may(str, None, "Who does it."),
                "metadata": may(dict[str, Any], None, "Anything else."),
            },
            update_task,
            show_updated,
        ),
        declare("TaskList", "Lists all tasks.", "todo", {}, list_tasks, show_tasks),
        declare(
            "AskUserQuestion",
            "Asks the person one to four questions and waits for the answers.",
            "question",
            {"questions": need(_QUESTION, "The questions.", min_length=1, max_length=4)},
            lambda args, _: ("question", ask_questions(args.questions)),
            _show_reply,
        ),
        declare(
            "Skill",
            "Activates a skill: written instructions for a kind of task.",
            "skill_control",
            {"skill": need(str, "The skill."), "args": may(str, None, "Arguments for it.")},
            lambda args, _: ("skill_control", {"name": args.skill, "action": "activate"}),
            lambda one: (one.content, {"success": True, "commandName": one.args.skill, "args": one.args.args}),
        ),
        declare(
            "LSP",
            "Asks a language server about a place in a file.",
            "lsp_definition lsp_references lsp_hover lsp_symbols",
            {
                "operation": need(_OPERATIONS, "What to ask."),
                "filePath": _PATH,
                "line": need(int, "The line, from 1.", ge=1),
                "character": need(int, "The character, from 1.", ge=1),
                "query": may(str, None, "Words for workspaceSymbol."),
            },
            _look_up,
        ),
        DialectTool(name="EnterPlanMode", about="", to=(), lacks="a person changes the mode: handrail --mode plan"),
        DialectTool(
            name="ExitPlanMode", about="", to=(), lacks="a person changes the mode; say that your plan is ready"
        ),
    ),
    render=_render,
)
