"""The dialect of Claude Code."""

import re
from collections.abc import Iterator
from typing import Any

from handrail.dialects.dialect import NOTHING, Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.facts import list_match_rows, name_state, number_lines
from handrail.dialects.notebook import edit_notebook, parse_cells
from handrail.dialects.render import drop_none, list_extras, list_notes
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import OPERATIONS, ask_questions, edit_or_create, filter_type, look_up, search_type
from handrail.protocol.errors import ToolError

_MAX_FILES = 100
_MAX_HITS = 100_000
_RANGE = re.compile(r"[1-9]\d{0,5}(-[1-9]\d{0,5})?")
_PAGE = re.compile(r"(?m)^--- page (\d+) of \d+ ---\n")
_STATUS = {"pending": "pending", "in_progress": "active", "completed": "done"}
_MODIFIED = "Todos have been modified successfully. Continue to use the todo list to track your progress."
_TOOLS = """
File:
  file_path* str -> path                                # The absolute path of the file.
Option: label* str; description* str; preview str
Question: question* str; header* str len<=12; options* Option[] len>=2 len<=4; multiSelect bool=false
Todo: content* str len>=1 -> text; status* pending|in_progress:active|completed:done -> status; activeForm* str
Read = read +File: Reads a file. Lines are numbered; pictures, notebooks and PDF files can be read too.
  offset number -> offset                               # The first line, from 1.
  limit number=2000 >=1 -> limit[1..10000]              # The number of lines.
  pages str                                             # Pages of a PDF file, such as "1-5".
Write = write +File: Writes a file. It replaces an existing one.
  content* str -> content                               # The content of the file.
  text: File {change}d successfully at: {path}
  data: type=change, filePath=path, content=written, originalFile=before,
    structuredPatch=[] if data.created else list_hunks(data.diff)
Edit = edit write@Write +File: Replaces an exact text in a file. It must be unique, unless replace_all is set.
  old_string* str -> oldText                            # The text to replace.
  new_string* str -> newText                            # The text to replace it with.
  replace_all bool=false -> replaceAll                  # Replace all occurrences.
  text: The file {path} has been updated successfully.
  data: filePath=path, oldString=args.old_string, newString=args.new_string, originalFile=before,
    userModified=False, replaceAll=args.replace_all,
    structuredPatch=list_hunks(data.diff)
NotebookEdit = write read: Replaces, inserts or deletes a cell of a Jupyter notebook.
  notebook_path* str -> path                            # The absolute path of the notebook.
  new_source* str                                       # The new source of the cell.
  cell_id str                                           # The cell; insert puts the new one after it, or at the start.
  cell_type code|markdown                               # The type of the cell; required for insert.
  edit_mode replace|insert|delete=replace               # What to do.
  text: {args.edit_mode.capitalize()} of cell {clean(args.cell_id or "0")} in {path} is done.
  data: new_source=args.new_source, edit_mode=args.edit_mode, language="python", notebook_path=path, diff=data.diff,
    original_file=before, updated_file=after, cell_type=args.cell_type or "code", **drop_none(cell_id=args.cell_id)
Glob = find: Finds files by a glob, such as **/*.ts. The newest come first.
  pattern* str len>=1 -> pattern                        # The glob.
  path str -> path                                      # The folder to search in.
Grep = search_text: Searches file contents by a regular expression (ripgrep).
  pattern* str len>=1 -> pattern                        # The regular expression.
  path str -> path                                      # File or folder to search in.
  glob str len>=1 -> filePattern                        # Glob of the files to search.
  output_mode content|files_with_matches:files|count=files_with_matches -> mode  # What to return.
  -B number >=0                                         # Lines before each match; for content.
  -A number >=0                                         # Lines after each match; for content.
  -C number >=0                                         # The same as context.
  context number >=0 -> contextLines                    # Lines before and after each match; for content.
  -n bool                                               # Show line numbers; for content. On by default.
  -i bool -> !caseSensitive                             # Ignore case.
  -o bool -> matchedOnly                                # Show only the matched parts; for content, without multiline.
  type str                                              # File type to search: js, py, rust, go, java …
  head_limit number=250 >=0 -> maxResults               # Show the first N lines or entries; 0: all.
  offset number=0 >=0                                   # Skip the first N lines or entries.
  multiline bool=false -> multiline                     # Let a match reach over line ends.
Bash = exec: Runs a shell command in the workspace, in a sandbox.
  command* str len>=1 -> command                        # The command to run.
  timeout number=120000 -> timeoutMs[100..600000]       # Milliseconds after which it is stopped, at most 600000.
  description str -> @purpose                           # What the command does, in a few words.
  run_in_background bool=false -> background            # Return at once. TaskOutput reads the output.
  dangerouslyDisableSandbox bool=false                  # Ignored: policy decides about the sandbox.
TaskOutput = process action="poll": Returns the new output of a background task.
  task_id* str -> sessionId                             # The task.
  block* bool                                           # Whether to wait for its end.
  timeout* number >=0                                   # Most milliseconds to wait.
  data: retrieval_status="success", task=dict(task_id=data.process.id, task_type="local_bash",
    status="running" if data.process.state == "running" else "completed", description=data.process.command,
    output=data.output or "", **drop_none(exitCode=data.process.exit_code))
TaskStop = process action="kill": Stops a background task.
  shell_id str -> sessionId                             # The older name of task_id.
  task_id str -> sessionId                              # The task.
  text: Successfully stopped task: {data.process.id} ({data.process.command})
  data: message=f"Successfully stopped task: {data.process.id} ({data.process.command})",
    task_id=data.process.id, task_type="local_bash", command=data.process.command
Monitor = exec background=true: Runs a command in the background.
  description* str -> @purpose                          # What is watched.
  timeout_ms number=300000 >=1 <=3600000                # Ignored: the command ends by itself or by TaskStop.
  command str -> command                                # The command.
  ws object                                             # Refused: Monitor watches commands only; give command
TodoWrite = todo: Replaces the list of steps.
  todos* Todo[] -> items                         # The list.
TaskCreate = todo: Adds a task to the list of steps.
  subject* str len>=1                                   # A short title.
  description* str                                      # What is to be done.
  activeForm str                                        # The title while it is being done.
  metadata object                                       # Anything else.
TaskGet = todo: Returns a task.
  taskId* str                                           # The task.
TaskUpdate = todo: Changes a task.
  taskId* str                                           # The task.
  subject str len>=1                                    # The new title.
  description str                                       # The new description.
  activeForm str                                        # The new title while it is being done.
  status pending|in_progress|completed|deleted          # The new state.
  addBlocks str[]                                       # Tasks that wait for it.
  addBlockedBy str[]                                    # Tasks that it waits for.
  owner str                                             # Who does it.
  metadata object                                       # Anything else.
TaskList = todo: Lists all tasks.
AskUserQuestion = question: Asks the person one to four questions and waits for the answers.
  questions* Question[] len>=1 len<=4                   # The questions.
  text: {quote_answers(one)}
  data: questions=args.questions,
    answers={asked.question: ", ".join(reply) for asked, reply in zip(args.questions, list_answers(one))}
Skill = skill_control action="activate": Activates a skill: written instructions for a kind of task.
  skill* str -> name                                    # The skill.
  args str                                              # Arguments for it.
  data: success=True, commandName=args.skill, args=args.args
LSP = lsp_definition lsp_references lsp_hover lsp_symbols @request: Asks a language server about a place in a file.
  operation* Operation                                  # What to ask.
  filePath* str -> path                                 # The absolute path of the file.
  line* int >=1 -> line-1                               # The line, from 1.
  character* int >=1 -> character-1                     # The character, from 1.
  query str                                             # Words for workspaceSymbol.
WebFetch, WebSearch, Agent = !: a host can bring a tool of this name
EnterPlanMode = !: a person changes the mode: handrail --mode plan
ExitPlanMode = !: a person changes the mode; say that your plan is ready
"""


def _read(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    if args.pages is not None and not _RANGE.fullmatch(args.pages):
        raise ToolError("INVALID_ARGUMENT", f'pages must be such as "3" or "1-5", got {args.pages[:20]}')
    if args.pages is not None or args.file_path.endswith(".ipynb"):
        return "read", {"path": args.file_path, "offset": 1, "limit": 10_000}
    return "read", {"offset": 1, **given}


def _show_read(one: Answered) -> Shown:
    if one.is_picture:
        picture = one.result.attachments[0]
        file = {"base64": picture.content, "type": picture.mime, "originalSize": one.data.size}
        return Shown({"type": "image", "file": file})
    path, meta, content, first = one.path, one.result.meta, one.content, one.data.first_line or 1
    if path.endswith(".ipynb") and (cells := parse_cells(content)) is not None:
        parts = (f'<cell id="{cell["cell_id"]}">{cell["source"]}</cell id="{cell["cell_id"]}">' for cell in cells)
        return Shown({"type": "notebook", "file": {"filePath": path, "cells": cells}}, text="\n".join(parts))
    if one.args.pages is not None:
        text = content = _pick_pages(content, one.args.pages)
    else:
        text = "\n".join(number_lines(one, "\t", 6))
    file = {"filePath": path, "content": content, "numLines": meta.returned, "startLine": first}
    file["totalLines"] = meta.total
    if meta.next_offset is not None:
        lines = f"{first}-{one.last_line} of {meta.total or 'more'}"
        text += f"\n\n[Showing lines {lines}; next offset {meta.next_offset}]"
        file["truncatedByTokenCap"] = True
    return Shown({"type": "text", "file": file}, text=text or "(The file is empty.)")


def _pick_pages(content: str, pages: str) -> str:
    first, _, last = pages.partition("-")
    parts = _PAGE.split(content)[1:]
    wanted = range(int(first), int(last or first) + 1)
    return "".join(text for number, text in zip(parts[::2], parts[1::2], strict=True) if int(number) in wanted)


def _show_glob(one: Answered) -> Shown:
    files = [one.surface.to_absolute(path) for path in one.surface.sort_newest(one.data.files)]
    cut = one.truncated or len(files) > _MAX_FILES
    shown = files[:_MAX_FILES]
    text = "\n".join(shown) or "No files found"
    if cut:
        text += "\n(Results are truncated. Consider using a more specific path or pattern.)"
    twin = {"durationMs": round(one.result.duration_ms), "numFiles": len(shown), "filenames": shown, "truncated": cut}
    return Shown(twin | drop_none(totalMatches=one.result.meta.total), text=text)


def _grep(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    lists_lines = args.output_mode == "content"
    most = int(args.head_limit + args.offset) if args.head_limit and lists_lines else _MAX_HITS
    context = min(max(_find_context(args)), 20) if lists_lines and not args.o else 0
    return "search_text", search_type(args, given | {"maxResults": min(most, _MAX_HITS), "contextLines": context})


def _find_context(args: Any) -> tuple[int, int]:
    """Lines before and after a match. `context` goes before `-C`, and the more exact options before both."""
    around = args.context if args.context is not None else args.C
    before, after = (around if one is None else one for one in (args.B, args.A))
    return int(before or 0), int(after or 0)


def _show_grep(one: Answered) -> Shown:
    args, data, mode = one.args, one.data, one.args.output_mode
    counted = filter_type(one, data.files)
    paths = list(dict.fromkeys(found.path for found in counted or (*data.matches, *data.matched)))
    if mode == "content":
        rows = list(_list_rows(one))
    elif mode == "count":
        rows = [f"{file.path}:{file.matches}" for file in counted]
    else:
        rows = paths = one.surface.sort_newest(tuple(paths))
    first, most = int(args.offset), int(args.head_limit)
    shown = rows[first:][: most or None]
    text = "\n".join(shown)
    twin: dict[str, Any] = {"mode": mode, "numFiles": len(paths), "filenames": []}
    if mode == "files_with_matches":
        twin |= {"numFiles": len(shown), "filenames": shown, "totalFiles": len(paths)}
        text = f"Found {len(shown)} file{'' if len(shown) == 1 else 's'}\n{text}" if shown else "No files found"
    elif mode == "count":
        twin |= {"content": text, "numMatches": sum(file.matches for file in counted)}
    else:
        twin |= {"content": text, "numLines": len(shown), "totalLines": len(rows)}
    text = text or "No matches found"
    if first or len(rows) > len(shown):
        twin |= drop_none(appliedLimit=most or None, appliedOffset=first or None)
        text += f"\n\n[Showing results with pagination = limit: {most}, offset: {first}]"
    return Shown(twin, text=text)


def _list_rows(one: Answered) -> Iterator[str]:
    """Rows as grep prints them: `path:12:text` for a match, `path-13-text` for a line around it."""
    args, data = one.args, one.data
    numbered = args.n is not False
    if args.o:
        yield from (f"{match.path}:{f'{match.line}:' if numbered else ''}{match.text}" for match in data.matched)
        return
    before, after = _find_context(args)
    last: tuple[str, int] | None = None
    for path, number, text, is_match in list_match_rows(data.matches, before, after):
        if last is not None and (before or after) and (path, number) != (last[0], last[1] + 1):
            yield "--"
        last, sign = (path, number), ":" if is_match else "-"
        yield f"{path}{sign}{f'{number}{sign}' if numbered else ''}{text}"


def _run(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    if args.run_in_background:
        del given["timeoutMs"]
    return "exec", given


def _poll(args: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    if args.block:
        surface.wait_for_end(args.task_id, min(args.timeout, 600_000))
    return "process", given


def _show_command(one: Answered) -> Shown:
    data = one.data
    if data.session_id is not None:
        twin = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": data.session_id}
        return Shown(twin, text=f"Command running in background with ID: {data.session_id}")
    stdout, stderr = one.stdout, data.stderr or ""
    twin: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "interrupted": data.exit_code is None}
    twin |= drop_none(returnCodeInterpretation=data.meaning, persistedOutputPath=one.result.meta.output)
    printed = "\n".join(filter(None, (stdout.rstrip("\n"), stderr.rstrip("\n"))))
    if data.exit_code:
        return Shown(twin | {"is_error": True}, text=f"Exit code {data.exit_code}\n{printed}".rstrip("\n"))
    return Shown(twin, text=printed or "(no output)")


# Tasks. The canonical list has texts with states; the rest is remembered here, also of deleted ones.


def _load_tasks(surface: Surface) -> dict[str, dict[str, Any]]:
    if "tasks" not in surface.memory:
        items = {str(number): item for number, item in enumerate(surface.list_todo(), 1)}
        tasks = {key: {"id": key, "subject": item.text, "status": name_state(item)} for key, item in items.items()}
        surface.memory["tasks"] = tasks
    return surface.memory["tasks"]


def _store_tasks(surface: Surface, data: dict[str, Any], text: str) -> Canonical:
    """The call with all tasks, and its answer."""
    tasks = [task for task in _load_tasks(surface).values() if task["status"] != "deleted"]
    items = [{"text": task["subject"], "status": _STATUS[task["status"]]} for task in tasks]
    return "todo", {"items": items, "@shown": Shown(data, text=text)}


def _get_task(surface: Surface, task_id: str) -> dict[str, Any]:
    task = _load_tasks(surface).get(task_id)
    if task is None or task["status"] == "deleted":
        raise ToolError("NOT_FOUND", f"Task not found: {task_id[:40]}")
    return task


def _create_task(args: Any, _: Any, surface: Surface) -> Canonical:
    tasks = _load_tasks(surface)
    task = {"id": str(len(tasks) + 1), "subject": args.subject}
    more = drop_none(activeForm=args.activeForm, metadata=args.metadata)
    tasks[task["id"]] = {**task, "description": args.description, "status": "pending", **more}
    return _store_tasks(surface, {"task": task}, f"Task #{task['id']} created successfully: {args.subject}")


def _update_task(args: Any, _: Any, surface: Surface) -> Canonical:
    task = _get_task(surface, args.taskId)
    names = ("subject", "description", "activeForm", "status", "owner", "metadata")
    changes = drop_none(**{name: getattr(args, name) for name in names})
    links = {"blocks": args.addBlocks, "blockedBy": args.addBlockedBy}
    changes |= {name: [*task.get(name, []), *ids] for name, ids in links.items() if ids}
    change = {"from": task["status"], "to": args.status} if args.status else None
    task.update(changes)
    data = {"success": True, "taskId": args.taskId, "updatedFields": list(changes)} | drop_none(statusChange=change)
    return _store_tasks(surface, data, f"Updated task #{args.taskId} {', '.join(changes)}".rstrip())


def _find_task(args: Any, _: Any, surface: Surface) -> Canonical:
    task = _get_task(surface, args.taskId)
    return _store_tasks(
        surface, {"task": dict(task)}, f"Task #{task['id']}: {task['subject']}\nStatus: {task['status']}"
    )


def _list_tasks(_: Any, __: Any, surface: Surface) -> Canonical:
    tasks = [dict(task) for task in _load_tasks(surface).values() if task["status"] != "deleted"]
    text = "\n".join(f"#{task['id']} [{task['status']}] {task['subject']}" for task in tasks)
    return _store_tasks(surface, {"tasks": tasks}, text or "No tasks found")


def _write_todos(args: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    surface.memory.pop("tasks", None)
    todos = {"oldTodos": surface.memory.get("todos", ()), "newTodos": args.todos}
    surface.memory["todos"] = args.todos
    return "todo", given | {"@shown": Shown(todos, text=_MODIFIED)}


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    text = one.content if shown.text is None else shown.text
    twin: dict[str, Any] = shown.data or {"content": one.content}
    is_error = twin.pop("is_error", False) or one.result.error is not None
    if one.code and shown is not NOTHING:
        text, twin = f"{text}\n{one.message}", twin | {"timedOutAfterMs": round(one.args.timeout)}
    elif one.code:
        text, twin = one.message, {"error": one.code}
    else:
        for note in list_notes(one.result):
            text += "" if note in text else f"\n[{note}]"
    told: dict[str, Any] = {"type": "tool_result", "tool_use_id": one.call_id, "content": text}
    if is_error:
        told["is_error"] = True
    told["tool_use_result"] = {**twin, "meta": list_extras(one.result)}
    return DialectAnswer(text, told)


DIALECT = Dialect(
    name="claude-code",
    follows="agent SDK 0.3.287",
    splits_streams=True,
    unknown="No such tool available: {name}",
    invalid=lambda name, texts: f"{name} failed due to the following issue(s): {'. '.join(texts)}",
    tools=parse_tools(
        _TOOLS,
        {
            "Read": Code(_read, _show_read),
            "Edit": Code(edit_or_create),
            "NotebookEdit": Code(edit_notebook),
            "Glob": Code(show=_show_glob),
            "Grep": Code(_grep, _show_grep),
            "Bash": Code(_run, _show_command),
            "TaskOutput": Code(_poll),
            "Monitor": Code(show=_show_command),
            "TodoWrite": Code(_write_todos),
            "TaskCreate": Code(_create_task),
            "TaskGet": Code(_find_task),
            "TaskUpdate": Code(_update_task),
            "TaskList": Code(_list_tasks),
            "AskUserQuestion": Code(ask_questions),
            "LSP": Code(look_up),
        },
        Operation=OPERATIONS,
    ),
    render=_render,
)
