"""The dialect of Agentica: every answer is one text."""

import re
from bisect import bisect_left
from typing import Any

from handrail.code.symbols import group_kind
from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.render import add_notes, drop_none, get_details, list_notes, to_json
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools

_MAX_PLACES = 3
_ARGUMENT_END = re.compile(r"\s*[:=]")
"""Of the name in `name: type = default`."""
_COMPLEXITIES = (10, 20)
"""Those of the most complex function of a simple file, and of a medium one."""
_TOOLS = """
File:
  file_path* str -> path                                    # Path of the file.
Place:
  file_path* str -> path                                    # Path of the file.
  line* int >=0 -> line                                     # The line, from 0.
  character* int >=0 -> character                           # The character, from 0.
Edit: old_string* str -> oldText; new_string* str -> newText
Todo: content* str len>=1 -> text; status* pending|in_progress:active|completed:done -> status
read_file = read +File: Read a file. Lines are numbered from 1.
  offset int=0 >=0 -> offset+1                              # The first line, from 0.
  limit int=500 >=1 <=10000 -> limit                        # The number of lines.
  text: {number_page(one, 6)}
write_file = write +File: Write a file. It replaces an existing one.
  content* str -> content                                   # The whole content.
  text: {change.capitalize()}d file, absolute path: {path}
edit_file = edit multi_edit +File: Replace a text in a file. It must be unique, unless replace_all is set.
  old_string* str -> oldText                                # The text to replace.
  new_string* str -> newText                                # The text to put in its place.
  replace_all bool=false -> replaceAll                      # Replace all occurrences.
  allow_multiple_matches bool=false                         # Of several occurrences replace the first one only.
  text: Successfully replaced {result.meta.occurrences} occurrence(s) in '{args.file_path}'
multi_edit = multi_edit +File: Make several replacements in one file, in order, all or none.
  edits* Edit[] len>=1 -> edits                             # The replacements.
  text: Successfully applied {len(args.edits)} edits ({result.meta.occurrences} total replacements)
    in '{args.file_path}'
ls = ls: List a folder.
  directory str=. -> path                                   # The folder.
  whole: [dict(name=own.path, path=own.path if data.path == "." else f"{data.path}/{own.path}",
    type="dir" if own.kind == "directory" else "file") for own in data.entries]
glob = find: Find files by a glob, such as **/*.py.
  pattern* str len>=1 -> pattern                            # The glob.
  path str=. -> path                                        # The folder to search in.
  whole: data.files
grep = search_text: Search the contents of files.
  pattern* str len>=1 -> pattern                            # What to search for.
  path str=. -> path                                        # File or folder to search in.
  glob_pattern str len>=1 -> filePattern                    # Glob of the files to search.
  output_mode files_with_matches:files|content|count=files_with_matches -> mode  # What to return.
  max_results int=50 >=1 <=10000 -> maxResults              # Most results.
  use_regex bool=true                                       # Whether pattern is a regular expression.
execute = exec timeoutMs=120000: Run a shell command in the workspace, at most 120 seconds.
  command* str len>=1 -> command                            # The command.
write_todos = todo: Replace the list of steps.
  todos* Todo[] -> items                                    # The whole list.
  whole: [dict(id=str(number), content=own.text, status=name_state(own)) for number, own in enumerate(data.items, 1)]
read_todos = todo: Return the list of steps.
  whole: [dict(id=str(number), content=own.text, status=name_state(own)) for number, own in enumerate(data.items, 1)]
analyze_code = code_analyze +File: Analyze imports, functions, classes and complexity of a file.
get_code_outline = code_outline +File: Outline a file as Markdown.
format_code = code_format write=true +File: Format a file.
  formatter auto|black|autopep8|yapf|prettier=auto -> formatter  # The formatter.
  text: Successfully formatted {args.file_path} with {data.formatter}
lint_code = code_lint: Lint a file.
  file_path* str -> paths[]                                 # Path of the file.
  linter auto|pylint|flake8|eslint=auto -> linter           # The linter.
  text: {"Linting results" if data.findings else "No issues found"} {"for" if data.findings else "in"} {args.file_path}
    with {" and ".join(data.linters)}{":" + chr(10) + content if data.findings else ""}
find_symbols = code_symbols +File: Find functions, classes and variables of a file.
  symbol_type all|function|class|variable=all -> kind       # The kind of symbols.
  pattern str="" -> pattern                                 # A regular expression for their names.
goto_definition = lsp_definition @request +Place: Find the definition of a symbol.
  whole: data.locations
find_references = lsp_references @request +Place: Find the references to a symbol.
  whole: data.locations
hover_info = lsp_hover @request +Place: Describe a symbol.
  whole: data.text
get_diagnostics = lsp_diagnostics @request: List errors and warnings of a file.
  file_path* str -> paths[]                                 # Path of the file.
  whole: data.diagnostics
lsp_symbol = lsp_symbols @request: Find symbols.
  query str="" -> query
  whole: data.symbols
lsp_format = lsp_format @request +File: Format a file by its language server.
"""


def _edit(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    if args.allow_multiple_matches and not args.replace_all:
        first = {"oldText": args.old_string, "newText": args.new_string, "occurrence": "first"}
        return "multi_edit", {"path": args.file_path, "edits": [first]}
    return "edit", given


def _grep(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    pattern = args.pattern if args.use_regex else re.escape(args.pattern)
    most = args.max_results if args.output_mode == "content" else 100_000
    return "search_text", given | {"pattern": pattern, "maxResults": most}


def _read_todos(_: Any, __: Any, surface: Surface) -> Canonical:
    return "todo", {"items": [{"text": item.text, "status": item.status} for item in surface.list_todo()]}


def _show_analysis(one: Answered) -> Shown:
    """What could be parsed, after the system's own error if that is not all."""
    data = one.data
    own = [function for function in data.functions if function.parent is None]
    told = {
        "imports": [{"name": module.name, "alias": module.alias} for module in data.imports],
        "functions": [_describe(part, args=[_ARGUMENT_END.split(text)[0] for text in part.args]) for part in own],
        "classes": [_describe(part, methods=part.methods, bases=part.bases) for part in data.classes],
        "global_variables": [
            {"name": own.name, "value": own.value, "line_number": own.line} for own in data.global_variables
        ],
        "total_lines": data.lines,
        "complexity_estimate": ("low", "medium", "high")[bisect_left(_COMPLEXITIES, data.max_complexity)],
    }
    if data.has_errors:
        return Shown(text=f"Error: Syntax error in {one.args.file_path}: the rest of it is\n{to_json(told)}")
    return Shown(told)


def _describe(own: Any, **more: Any) -> dict[str, Any]:
    return {"name": own.name, **more, "line_number": own.line, "docstring": own.doc or None}


def _show_symbols(one: Answered) -> Shown:
    symbols = [
        {"type": group_kind(own.kind), "name": own.name, "line": own.line} | drop_none(docstring=own.doc or None)
        for own in one.data.symbols
    ]
    return Shown(sorted(symbols, key=lambda row: row["line"]))


def _show_grep(one: Answered) -> Shown:
    args, data = one.args, one.data
    files = data.files[: args.max_results]
    if args.output_mode == "files_with_matches":
        return Shown([file.path for file in files])
    counts = [f"{file.path}: {file.matches}" for file in files]
    found = [f"{match.path}:{match.line}: {match.text[:200]}" for match in data.matches]
    return Shown(text="\n".join(counts or found) or f"No matches found for '{args.pattern}'")


def _show_command(one: Answered) -> Shown:
    data, text = one.data, one.stdout
    if data.stderr:
        text = f"{text.rstrip()}\n[stderr]\n{data.stderr}".lstrip("\n")
    if data.exit_code:
        text = f"{text.rstrip()}\n\n[Exit code: {data.exit_code}]".lstrip("\n")
    return Shown(text=text or "Command executed successfully (exit code: 0)")


def _describe_error(one: Answered) -> str:  # noqa: PLR0911  one a kind
    args = one.args
    if args is None:
        return one.message
    path = getattr(args, "file_path", "") or getattr(args, "path", "")
    match one.tool.name, one.code:
        case "edit_file" | "multi_edit", "NO_MATCH" | "AMBIGUOUS_MATCH":
            return _describe_edit_error(one)
        case "ls", "NOT_FOUND" | "NOT_A_DIRECTORY":
            return f"Directory not found: {args.directory}"
        case "grep", "INVALID_ARGUMENT":
            return f"Invalid regex pattern '{args.pattern}': {one.message}"
        case "execute", "TIMEOUT":
            return "Command timed out after 120 seconds"
        case _, "NOT_FOUND":
            return f"File not found: {path}"
        case _, "NOT_A_FILE":
            return f"Not a file: {path}"
        case "read_file", _:  # its offset counts from 0
            return re.sub(r"^offset (\d+)", lambda found: f"offset {int(found[1]) - 1}", one.message)
        case _:
            return one.message


def _describe_edit_error(one: Answered) -> str:
    """The system's own words about a text that is missing, or in the file more than once."""
    details, number, old = get_details(one.result.error), "", getattr(one.args, "old_string", "")
    if one.tool.name == "multi_edit":
        place = int(details.get("edit", 0))
        number, old = f"Edit {place + 1}: ", one.args.edits[place].old_string
    if one.code == "NO_MATCH":
        return f"{number}String not found: {old[:50]}..."
    places: list[Any] = list(details.get("places", []))[:_MAX_PLACES]
    advice = "Provide more context to make it unique, or use replace_all=True to replace all occurrences."
    rows = [f"  - Line {place['line']}: ...{_shorten(place.get('context', ''), old)}..." for place in places]
    head = f"{number}Found {details.get('count', 'several')} matches for the string. {advice}"
    return "\n".join((head, *(("Matches found at:", *rows) if rows else ())))


def _shorten(text: str, old: str) -> str:
    at = text.find(old)
    return (text[at : at + len(old) + 30] if at >= 0 else text[:30]).replace("\n", "\\n")


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    text = one.content if shown.text is None else shown.text
    if shown.data != {}:
        text = to_json(shown.data)
    if one.code:
        start = "Error writing file" if one.tool.name == "write_file" and one.args is not None else "Error"
        text = f"{start}: {_describe_error(one)}"
    text = add_notes(text, list_notes(one.result))
    return DialectAnswer(text, text)


DIALECT = Dialect(
    name="agentica",
    follows="tools redesign (2026-02-12)",
    splits_streams=True,
    tools=parse_tools(
        _TOOLS,
        {
            "edit_file": Code(_edit),
            "grep": Code(_grep, _show_grep),
            "execute": Code(show=_show_command),
            "analyze_code": Code(show=_show_analysis),
            "find_symbols": Code(show=_show_symbols),
            "read_todos": Code(_read_todos),
        },
    ),
    render=_render,
)
