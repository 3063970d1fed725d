"""The tools code_format, code_lint: they run the programs with which a project formats its files, or checks them.

A call is a command, which policy judges like the same command of exec: it has a preview, runs in the sandbox, and its
changes can be undone. Configuration of the project may run code in it.
"""

import os
import posixpath
import shlex
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from handrail.code.languages import LANGUAGES, find_language
from handrail.code.lint_reports import LintFinding, UnreadableReportError, read_report
from handrail.code.programs import FORMATTERS, LINTERS, CodeProgram, ProjectFiles, build_command, choose_program
from handrail.edit.diff import build_unified_diff
from handrail.protocol.changes import Preview
from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_unprintable, format_count, truncate
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.command_environment import CommandEnvironment
from handrail.tools.exec.exec_tool import execute
from handrail.tools.exec.overlay import preview_command
from handrail.tools.exec.result import render_changes
from handrail.tools.exec.run import CommandRun
from handrail.tools.exec.spec import ExecArguments
from handrail.tools.tool import Background, CommandContext, CommandUse, Output, Tool, Touches
from handrail.workspace.facts import build_command_fact
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.process.result import CapturedOutput, CommandResult

    Render = Callable[[Output, CommandResult], Output]

_MAX_FILE_BYTES = 4 << 20
_MAX_CONFIG_BYTES = 1 << 18
_MAX_PATHS = 500
_MAX_FINDINGS = 1_000
_MAX_ERROR_CHARS = 600
_NEXT = "handrail: the next linter"
"""Stands between the reports of two linters."""
_NOT_FOUND = 127
_FINDINGS_EXIT_CODES = frozenset((0, 1))
"""Of a linter that did its work."""


class CodeFormatArguments(Arguments, frozen=True):
    """The arguments of code_format."""

    path: Annotated[str, Meta(description="File, relative to the workspace.")]
    formatter: Annotated[
        str, Meta(description=f"auto, or one of {', '.join(one.name for one in FORMATTERS)}; auto follows the project.")
    ] = "auto"
    write: Annotated[bool, Meta(description="Rewrite the file; otherwise only the diff is returned.")] = False


class CodeFormatData(Wire, frozen=True, omit_defaults=False):
    """What the formatter changes."""

    path: str
    formatter: str
    changed: bool
    """Whether the formatter changes the file."""
    written: bool
    diff: str


class CodeLintArguments(Arguments, frozen=True):
    """The arguments of code_lint."""

    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, max_length=_MAX_PATHS, description="Files or folders to check.")
    ]
    linter: Annotated[
        str, Meta(description=f"auto, or one of {', '.join(one.name for one in LINTERS)}; auto follows the project.")
    ] = "auto"


class CodeLintData(Wire, frozen=True, omit_defaults=False):
    """What the linters found."""

    linters: tuple[str, ...]
    findings: tuple[LintFinding, ...]


CODE_FORMAT = ToolSpec(
    name="code_format",
    title="Format",
    description=(
        "Format a file with the formatter that its project uses, and return the diff. With write the file is "
        "rewritten, and the change can be undone."
    ),
    arguments=CodeFormatArguments,
    data=CodeFormatData,
    permissions=("fs.read", "fs.write", "proc.exec"),
    side_effects=("files", "processes"),
    idempotent=True,
    enabled=False,
    plain_arguments=("path", "formatter"),
    layer="gain",
    stage="change",
    intent="format a file",
    not_for=(("other changes to a file", "edit"),),
)
CODE_LINT = ToolSpec(
    name="code_lint",
    title="Lint",
    description="Check files with the linters that their project uses. Lists each finding with line, rule and message.",
    arguments=CodeLintArguments,
    data=CodeLintData,
    permissions=("fs.read", "proc.exec"),
    side_effects=("files", "processes"),
    enabled=False,
    plain_arguments=("paths", "linter"),
    layer="gain",
    stage="run",
    intent="check files with linters",
    not_for=(("running tests", "exec"),),
)


def build_code_format_tool(
    environment: CommandEnvironment, background: Background, recorder: "Callable[[], Recorder]"
) -> Tool:
    return _build_tool(CODE_FORMAT, _build_format_command, _start_format, environment, background, recorder)


def build_code_lint_tool(
    environment: CommandEnvironment, background: Background, recorder: "Callable[[], Recorder]"
) -> Tool:
    return _build_tool(CODE_LINT, _build_lint_command, _start_lint, environment, background, recorder)


def build_lsp_lint_tool(
    environment: CommandEnvironment, background: Background, recorder: "Callable[[], Recorder]"
) -> Tool:
    """code_lint for dialects, to which the registry adds the language servers of the session."""
    return replace(build_code_lint_tool(environment, background, recorder), spec=replace(CODE_LINT, name="lsp_lint"))


def _build_tool(
    spec: ToolSpec,
    build_command: Callable[[CommandEnvironment, Workspace, Any], CommandUse],
    start: "Callable[[CommandContext, Any], Render]",
    environment: CommandEnvironment,
    background: Background,
    recorder: "Callable[[], Recorder]",
) -> Tool:
    """`start` looks at the files before the command runs, and returns the function that renders its result."""

    def touches(arguments: Any) -> Touches:
        return Touches(build_command=lambda workspace: build_command(environment, workspace, arguments))

    def build_run(context: CommandContext, render: "Render | None" = None) -> "CommandRun":
        return CommandRun(
            context=replace(context, limits=replace(context.limits, splits_streams=True)),
            arguments=ExecArguments(command=_get_command(context)),
            environment=environment,
            background=background,
            recorder=recorder(),
            render=render,
        )

    def run(context: CommandContext, arguments: Any) -> Output:
        return execute(build_run(context, start(context, arguments)))

    def preview(context: CommandContext, _: Any) -> Preview:
        return preview_command(build_run(context))

    return Tool(spec, run, touches, preview, context=CommandContext)


# The command of a call


def _get_command(context: CommandContext) -> str:
    command = context.facts.command
    if command is None:
        raise AssertionError("the command was built before the call was decided")
    return command.text


def _build_format_command(
    environment: CommandEnvironment, workspace: Workspace, arguments: CodeFormatArguments
) -> CommandUse:
    path = arguments.path
    candidates = _list_candidates(FORMATTERS, find_language(path), arguments.formatter, "formatter")
    if not candidates:
        raise _build_no_program_error("formatter", path, arguments.formatter)
    project = _build_project(environment, workspace)
    program = choose_program(candidates, path, project)
    template = program.in_place if arguments.write else program.command
    executable, option = _find_executable(project, program, path), project.find_option(program, path)
    return CommandUse(build_command(template, executable, (path,), option), ".")


def _build_lint_command(
    environment: CommandEnvironment, workspace: Workspace, arguments: CodeLintArguments
) -> CommandUse:
    project = _build_project(environment, workspace)
    groups: dict[CodeProgram, list[str]] = {}
    for path in dict.fromkeys(arguments.paths):
        fact = build_command_fact(workspace, path, "read")
        if fact.kind == "missing" and find_language(path) is None:  # an earlier call of the batch may write the file
            raise workspace.build_not_found_error(path, "file or folder")
        for program in _choose_linters(project, path, arguments.linter, is_folder=fact.kind == "directory"):
            groups.setdefault(program, []).append(path)
    commands = (
        build_command(program.command, _find_executable(project, program, paths[0]), paths)
        for program, paths in groups.items()
    )
    return CommandUse(f"; echo; echo '{_NEXT}'; ".join(commands), ".")


def _choose_linters(project: ProjectFiles, path: str, wanted: str, *, is_folder: bool) -> list[CodeProgram]:
    """The linter of a file. Of a folder: each that its project uses, one for a language."""
    if not is_folder or wanted != "auto":
        language = None if is_folder else find_language(path)
        candidates = _list_candidates(LINTERS, language, wanted, "linter", any_language=is_folder)
        if not candidates:
            raise _build_no_program_error("linter", path, wanted)
        return [choose_program(candidates, path, project)]
    inside = posixpath.join(path, "file")
    used = [program for program in LINTERS if project.is_used(program, posixpath.normpath(inside))]
    first = {program.languages: program for program in reversed(used)}
    if not first:
        message = f"No configuration of a linter was found for the folder {clip_path(path)}. Name files, or a linter."
        raise ToolError("INVALID_ARGUMENT", message)
    return list(reversed(first.values()))


def _list_candidates(
    programs: Iterable[CodeProgram], language: str | None, wanted: str, noun: str, *, any_language: bool = False
) -> list[CodeProgram]:
    known = [program.name for program in programs]
    if wanted != "auto" and wanted not in known:
        message = f"{noun} {truncate(wanted, 40)!r} is unknown. Use auto or one of {', '.join(known)}."
        raise ToolError("INVALID_ARGUMENT", message)
    return [
        program
        for program in programs
        if wanted in ("auto", program.name) and (any_language or language in program.languages)
    ]


def _build_no_program_error(noun: str, path: str, wanted: str) -> ToolError:
    language = find_language(path)
    title = f" ({LANGUAGES[language].title})" if language else ""
    if wanted != "auto":
        return ToolError("INVALID_ARGUMENT", f"{wanted} does not take files such as {clip_path(path)}{title}.")
    return ToolError("UNAVAILABLE", f"handrail knows no {noun} for {clip_path(path)}{title}. Run one with exec.")


def _build_project(environment: CommandEnvironment, workspace: Workspace) -> ProjectFiles:
    def read(path: str) -> bytes | None:
        try:
            with workspace.open_file(path) as opened:
                return os.read(opened.descriptor, _MAX_CONFIG_BYTES)
        except (ToolError, OSError):
            return None

    def is_on_path(name: str) -> bool:
        try:
            path = environment.variables(workspace.roots)["PATH"]
        except ToolError:
            return True  # there is no session: the call is only explained
        return shutil.which(name, path=path) is not None

    return ProjectFiles(read, is_on_path)


def _find_executable(project: ProjectFiles, program: CodeProgram, path: str) -> str:
    executable = project.find_executable(program, path)
    if executable is None:
        raise _build_missing_error(program)
    return executable


def _build_missing_error(program: CodeProgram) -> ToolError:
    message = f"{program.name} is not installed, or commands do not see it: {program.install}. Nothing was run."
    return ToolError("UNAVAILABLE", message)


def _list_programs(text: str, programs: Iterable[CodeProgram]) -> list[CodeProgram]:
    """The programs of a command that was built here."""
    by_word = {program.command.split()[0]: program for program in programs}
    parts = text.split(f"; echo; echo '{_NEXT}'; ")
    return [by_word[posixpath.basename(shlex.split(part)[0])] for part in parts]


def _read_file(workspace: Workspace, path: str) -> bytes:
    return workspace.read_small_file(path, _MAX_FILE_BYTES)


# The results


def _start_format(context: CommandContext, arguments: CodeFormatArguments) -> "Render":
    return partial(_render_format, context, arguments, _read_file(context.workspace, arguments.path))


def _start_lint(context: CommandContext, arguments: CodeLintArguments) -> "Render":
    for path in arguments.paths:
        if build_command_fact(context.workspace, path, "read").kind == "missing":
            raise context.workspace.build_not_found_error(path, "file or folder")
    return partial(_render_lint, context, arguments)


def _render_format(
    context: CommandContext, arguments: CodeFormatArguments, before: bytes, output: Output, result: "CommandResult"
) -> Output:
    [program] = _list_programs(_get_command(context), FORMATTERS)
    failure = output.failure or _find_failure(program, result, frozenset((0,)))
    path, after, diff = arguments.path, before, ""
    if failure is None:
        after = _read_file(context.workspace, path) if arguments.write else _get_whole_output(result.output)
        diff = _build_diff(before, after, path)
    is_changed = after != before
    expected = posixpath.normpath(path) if arguments.write and failure is None else ""
    if arguments.write:
        summary = f"{program.name} formatted {clip_path(path)}" if is_changed else f"{clip_path(path)} was not changed"
    else:
        summary = f"{program.name} would {'change' if is_changed else 'not change'} {clip_path(path)}"
    return replace(
        output,
        summary=summary,
        content=(f"{failure.message}\n" if failure else f"{summary}.\n{diff}")
        + _render_other_changes(output, expected),
        data=CodeFormatData(
            path=path, formatter=program.name, changed=is_changed, written=arguments.write and is_changed, diff=diff
        ),
        truncated=False,
        kept=None,
        raw=None,
        failure=failure,
    )


def _render_other_changes(output: Output, expected: str = "") -> str:
    """All that the program changed, if that is more than the expected file. Otherwise empty."""
    made = output.changes
    if made is None or all(change.path == expected for change in made.changes):
        return ""

    return render_changes(made)


def _build_diff(before: bytes, after: bytes, path: str) -> str:
    old, new = decode_text(before), decode_text(after)
    if old is None or new is None:
        raise ToolError("BINARY_FILE", f"{clip_path(path)} is not text.")
    return build_unified_diff(old.text, new.text, path).text


def _render_lint(
    context: CommandContext, arguments: CodeLintArguments, output: Output, result: "CommandResult"
) -> Output:
    programs = _list_programs(_get_command(context), LINTERS)
    failure, findings = output.failure, list[LintFinding]()
    if failure is None:
        try:
            findings = _read_findings(context.workspace, programs, arguments, result)
        except ToolError as error:
            failure = error
    names = tuple(program.name for program in programs)
    return list_findings(replace(output, failure=failure), names, findings, len(findings))


def list_findings(output: Output, names: tuple[str, ...], findings: Iterable[LintFinding], total: int) -> Output:
    """The output of these programs, with as many of the findings as a result may have."""
    none = "No findings.\n" if output.failure is None else f"{output.failure.message}\n"
    shown = sorted(findings, key=lambda one: (one.file, one.line, one.column or 0))[:_MAX_FINDINGS]
    summary = f"{format_count(total, 'finding')} of {' and '.join(names)}"
    return replace(
        output,
        summary=summary,
        content=("".join(map(_render_finding, shown)) or none) + _render_other_changes(output),
        data=CodeLintData(linters=names, findings=tuple(shown)),
        truncated=len(shown) < total,
        meta={**output.meta, "returned": len(shown), "total": total},
        kept=None,
        raw=None,
    )


def _read_findings(
    workspace: Workspace, programs: list[CodeProgram], arguments: CodeLintArguments, result: "CommandResult"
) -> list[LintFinding]:
    reports = _get_whole_output(result.output).decode(errors="replace").split(f"\n{_NEXT}\n")
    findings: list[LintFinding] = []
    for number, program in enumerate(programs):
        try:
            found = read_report(program.name, reports[number] if number < len(reports) else "")
        except UnreadableReportError:
            raise _build_failure(program, result) from None
        if not found and (failure := _find_failure(program, result, _FINDINGS_EXIT_CODES)):
            raise failure
        findings += found
    root = f"{workspace.main.path}/"
    named = [replace(one, file=posixpath.normpath(one.file.removeprefix(root))) for one in findings]
    folders = tuple(posixpath.normpath(path) for path in arguments.paths)
    return [one for one in named if any(_is_below(one.file, folder) for folder in folders)]


def _is_below(path: str, folder: str) -> bool:
    return folder in {".", path} or path.startswith(f"{folder}/")


def _render_finding(one: LintFinding) -> str:
    column = f":{one.column}" if one.column is not None else ""
    rule = f" {one.rule}" if one.rule else ""
    fix = f" (fix: {one.fix})" if one.fix else ""
    return f"{escape_unprintable(f'{one.file}:{one.line}{column}: {one.severity}{rule} {one.message}{fix}')}\n"


def _find_failure(program: CodeProgram, result: "CommandResult", expected: frozenset[int]) -> ToolError | None:
    return None if result.exit_code in expected else _build_failure(program, result)


def _build_failure(program: CodeProgram, result: "CommandResult") -> ToolError:
    if result.exit_code == _NOT_FOUND:
        return _build_missing_error(program)
    printed = "".join(
        stream.head.decode(errors="replace") for stream in (result.errors, result.output) if stream is not None
    )
    text = truncate(" ".join(printed.split()), _MAX_ERROR_CHARS)
    what = f"failed with exit code {result.exit_code}" if result.exit_code else "printed no report"
    message = f"{program.name} {what}{': ' if text else ''}{text}"
    return ToolError("UNAVAILABLE", escape_unprintable(message))


def _get_whole_output(output: "CapturedOutput") -> bytes:
    if output.tail or output.lost:
        message = f"The program printed {output.total:,} bytes, which is too much. Name fewer or smaller files."
        raise ToolError("LIMIT_EXCEEDED", message)
    return output.head
