"""The dialect of opencode."""

import re
from time import time
from typing import Any

from handrail.dialects.dialect import NOTHING, Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.facts import group_problems, list_patched_files, number_lines
from handrail.dialects.render import add_block, drop_none, list_extras
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import OPERATIONS, ask_questions, edit_or_create, look_up

_TYPES = {"created": "add", "modified": "update", "deleted": "delete", "renamed": "move"}
_MAX_METADATA_CHARS = 30_000
_DIFF_HEAD = r"^--- (?:a/(.+?)|/dev/null)\n\+\+\+ (?:b/(.+?)|/dev/null)\n"
_FILE_DIFF = re.compile(rf"(?ms){_DIFF_HEAD}.*?(?=^--- [^\n]+\n\+\+\+ |\Z)")
_MAX_PREVIEW_LINES = 20
_TOOLS = """
File:
  filePath* str -> path                                 # The path of the file.
Option: label* str; description* str
Question: question* str; header* str len<=30; options* Option[]; multiple bool=false
Todo: content* str len>=1 -> text; status* pending|in_progress:active|completed:done|cancelled:done -> status
  priority* high|medium|low
bash = exec: Runs a shell command in the workspace, in a sandbox.
  command* str len>=1 -> command                        # The command.
  timeout int=120000 >0 -> timeoutMs[100..600000]       # Milliseconds after which it is stopped.
  workdir str -> cwd                                    # The folder to run it in; the workspace if not given.
read = read ls: Reads a file with numbered lines, or lists a folder.
  filePath* str -> path                                 # The path of the file or folder.
  offset int=1 >=1 -> offset                            # The first line, from 1.
  limit int=2000 >=1 -> limit[1..10000]                 # The number of lines.
  title: {data.path}
write = write +File: Writes a file. It replaces an existing one.
  content* str -> content                               # The whole content.
  title: {data.path}
  text: Wrote file successfully.
  data: filepath=path, exists=not data.created, diagnostics=group_problems(one)
edit = edit write@write +File: Replaces an exact text in a file. It must be unique, unless replaceAll is set.
  oldString* str -> oldText                             # The text to replace.
  newString* str -> newText                             # The text to replace it with.
  replaceAll bool=false -> replaceAll                   # Replace all occurrences.
  title: {data.path}
  text: Edit applied successfully.
  data: diff=data.diff, diagnostics=group_problems(one),
    filediff=dict(file=path, patch=data.diff, **count_changes(data.diff))
apply_patch = apply_patch: Changes files by a patch: *** Begin Patch … *** End Patch.
  patchText* str -> patch                               # The whole patch.
glob = find maxResults=100: Finds files by a glob, such as **/*.ts.
  pattern* str len>=1 -> pattern                        # The glob.
  path str -> path                                      # The folder to search in.
  title: {data.path}
  text: {add_cut(one, list_paths(one, data.files))}
  data: count=len(data.files), truncated=truncated
grep = grep: Searches file contents by a regular expression.
  pattern* str len>=1 -> pattern                        # The regular expression.
  path str -> path                                      # The folder to search in.
  include str len>=1 -> filePattern                     # Glob of the files to search.
  title: {args.pattern}
  text: {add_cut(one, group_matches(one, data.matches, "  Line {}: {}") or "No files found")}
  data: matches=len(data.matches), truncated=truncated
todowrite = todo: Replaces the list of steps.
  todos* Todo[] -> items                                # The whole list.
  title: {len([todo for todo in args.todos if todo.status not in ("completed", "cancelled")])} todos
  text: {to_json(args.todos, indent=2)}
  data: todos=args.todos
question = question: Asks the person questions and waits for the answers.
  questions* Question[] len>=1                          # The questions.
  title: Asked {len(args.questions)} question{"s" * (len(args.questions) > 1)}
  text: {quote_answers(one)}.
  data: answers=list_answers(one)
skill = skill_control action="activate": Loads a skill: written instructions for a kind of task.
  name* str -> name                                     # The skill.
  title: Loaded skill: {args.name}
  data: name=args.name
lsp = lsp_definition lsp_references lsp_hover lsp_symbols @request: Asks a language server about a place in a file.
  operation* Operation                                  # What to ask.
  filePath* str -> path                                 # The path of the file.
  line* int >=1 -> line-1                               # The line, from 1.
  character* int >=1 -> character-1                     # The character, from 1.
  query str                                             # Words for workspaceSymbol.
  title: {args.operation} {args.filePath}:{args.line}
  text: {to_json(data)}
  data: result=getattr(data, data.__struct_fields__[0])
webfetch, websearch, task = !: a host can bring a tool of this name
plan_exit = !: a person changes the mode; say that your plan is ready
"""


def _read(args: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    return ("ls", {"path": args.filePath}) if surface.is_folder(args.filePath) else ("read", given)


def _show_read(one: Answered) -> Shown:
    if one.result.name == "ls":
        return _show_folder(one)
    if one.is_picture:
        return Shown({"preview": one.content, "truncated": False, "loaded": []})
    text, first, rows = one.content.removesuffix("\n"), one.first_line, number_lines(one, ": ", 0)
    last, total, more = first + len(rows) - 1, one.result.meta.total, one.has_more
    note = f"(End of file - total {total} lines)"
    if more:
        note = f"(Showing lines {first}-{last} of {total}. Use offset={last + 1} to continue.)"
    preview = text if len(rows) <= _MAX_PREVIEW_LINES else "\n".join(text.split("\n", _MAX_PREVIEW_LINES)[:-1])
    display = {"text": text, "lineStart": first, "lineEnd": last, "totalLines": total, "truncated": more}
    return _show_page(one.path, "file", "content", rows, note, preview, display)


def _show_folder(one: Answered) -> Shown:
    entries = [f"{entry.path}{'/' if entry.kind == 'directory' else ''}" for entry in one.data.entries]
    first = one.args.offset
    rows = entries[first - 1 : first - 1 + one.args.limit]
    more = first - 1 + len(rows) < len(entries) or one.truncated
    note = f"(Showing {len(rows)} of {len(entries)} entries.)" if more else f"({len(entries)} entries)"
    display = {"entries": rows, "offset": first, "totalEntries": len(entries), "truncated": more}
    return _show_page(one.path, "directory", "entries", rows, note, "\n".join(rows[:_MAX_PREVIEW_LINES]), display)


def _show_page(
    path: str, kind: str, tag: str, rows: list[str], note: str, preview: str, display: dict[str, Any]
) -> Shown:
    body = "\n".join((*rows, "", note))
    text = f"<path>{path}</path>\n<type>{kind}</type>\n<{tag}>\n{body}\n</{tag}>"
    display = {"type": kind, "path": path, **display}
    return Shown({"preview": preview, "truncated": display["truncated"], "loaded": [], "display": display}, text=text)


def _show_patch(one: Answered) -> Shown:
    patches = {found[2] or found[1]: found[0] for found in _FILE_DIFF.finditer(one.data.diff)}
    place = one.surface.to_absolute
    files = [
        {
            "filePath": place(file.renamed_from or file.path),
            "relativePath": file.path,
            "type": _TYPES.get(file.action, "update"),
            "patch": patches.get(file.path, ""),
            "additions": file.added,
            "deletions": file.removed,
            **drop_none(movePath=place(file.path) if file.renamed_from else None),
        }
        for file in one.data.files
    ]
    output = list_patched_files(one)
    return Shown({"diff": one.data.diff, "files": files, "diagnostics": group_problems(one)}, output, output)


def _show_command(one: Answered) -> Shown:
    data = one.data
    notes = [f"Exit code: {data.exit_code}"] if data.exit_code else []
    notes += [one.message] if one.code else []
    output = add_block(data.output or "(no output)", "shell_metadata", notes)
    metadata = {"output": data.output[-_MAX_METADATA_CHARS:], "exit": data.exit_code, "truncated": one.truncated}
    return Shown(metadata | drop_none(outputPath=one.result.meta.output), one.args.command, output)


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    result = one.result
    if one.code and shown is NOTHING:
        return _render_error(one)
    output = one.content if shown.text is None else shown.text
    if result.warnings:
        output += "\n\n" + "\n".join(result.warnings)
    metadata = {**shown.data, "handrail": list_extras(result)}
    answer: dict[str, Any] = {"title": shown.title or result.title, "output": output, "metadata": metadata}
    if result.attachments:
        answer["attachments"] = [
            {"type": "file", "mime": one.mime, "url": f"data:{one.mime};base64,{one.content}"}
            for one in result.attachments
        ]
    return DialectAnswer(output, answer)


def _render_error(one: Answered) -> DialectAnswer:
    text, metadata = one.message, {"handrail": list_extras(one.result)}
    match one.code:
        case "UNKNOWN_TOOL":  # opencode answers so by its tool `invalid`, as a success with an explanation
            return DialectAnswer(text, {"title": "Invalid Tool", "output": text, "metadata": metadata})
        case "PERMISSION_DENIED":
            text = f"The user rejected permission to use this specific tool call. {text}"
        case "POLICY_DENIED":
            text = f"The user has specified a rule which prevents you from using this specific tool call. {text}"
        case "BINARY_FILE" if one.args is not None and one.tool.name == "read":
            text = f"Cannot read binary file: {one.surface.to_absolute(one.args.filePath)}"
        case _ if one.tool.name == "apply_patch" and one.args is not None:
            text = f"apply_patch verification failed: {text}"
        case _:
            pass
    end = round(time() * 1000)
    state = {"status": "error", "input": one.given, "error": text, "metadata": metadata}
    return DialectAnswer(text, state | {"time": {"start": end - round(one.result.duration_ms), "end": end}})


def _invalid(name: str, texts: tuple[str, ...]) -> str:
    problems = f"The {name} tool was called with invalid arguments: {'. '.join(texts)}."
    return f"{problems}\nPlease rewrite the input so it satisfies the expected schema."


DIALECT = Dialect(
    name="opencode",
    follows="1.18.18",
    repairs_case=True,
    unknown="The arguments provided to the tool are invalid: Model tried to call unavailable tool '{name}'.",
    invalid=_invalid,
    tools=parse_tools(
        _TOOLS,
        {
            "bash": Code(show=_show_command),
            "read": Code(_read, _show_read),
            "edit": Code(edit_or_create),
            "apply_patch": Code(show=_show_patch),
            "question": Code(ask_questions),
            "lsp": Code(look_up),
        },
        Operation=OPERATIONS,
    ),
    render=_render,
)
