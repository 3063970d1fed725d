"""process: what a session's commands do that go on after their calls, and what they are told."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from handrail.protocol.arguments import build_argument_error
from handrail.protocol.errors import Problem, ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.records import ProcessRecord
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import CommandContext, Output, ProcessUse, Tool, Touches

if TYPE_CHECKING:
    from handrail.tools.contract import Background

Action = Literal["list", "poll", "log", "write", "kill", "clear", "remove"]
MAX_LOG_ROWS = 10_000
_MAX_WRITTEN_BYTES = 100_000
"""Of what is written at once: a person may have to read it."""


class ProcessArguments(Arguments, frozen=True):
    """The arguments of process."""

    action: Annotated[
        Action,
        Meta(
            description="list all; poll: output since the last poll; log: pages of all output; write to its input; "
            "kill it; clear its log; remove: end and forget it."
        ),
    ]
    session_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="The process session, from exec or list; needed for all but list."),
    ] = None
    offset: Annotated[
        int | None, Meta(description="log: first line, from 1; negative counts from the end (-200 = the last 200).")
    ] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_LOG_ROWS)] | None,
        Meta(description="log: most lines; 2000 if not given.", extra={"default": 2_000, "unit": "lines"}),
    ] = None
    data: Annotated[str | None, Meta(description="write: what to send; end a line with a newline.")] = None
    eof: Annotated[bool, Meta(description="write: end the input after the data.")] = False


class ProcessData(Wire, frozen=True):
    """What there is, or what came of it."""

    processes: tuple[ProcessRecord, ...] | None = None
    """list: all of them, the oldest first."""
    process: ProcessRecord | None = None
    """The one that the call was about, as it is afterwards; as it was before, where it is removed."""
    output: str | None = None
    """poll: what it has printed since the last poll; log: a page."""
    first_line: int | None = None
    """log: the line that the page begins with."""
    skipped: int = 0
    """poll: bytes before these that are not kept any more."""
    waiting: int = 0
    """poll: bytes behind these that the next poll gives."""


PROCESS = ToolSpec(
    name="process",
    title="Process",
    description=(
        "Look after commands that go on in the background (process sessions): list them, read what they print, write "
        "to their input, end them. Start one with exec (background or yieldMs)."
    ),
    arguments=ProcessArguments,
    data=ProcessData,
    permissions=("proc.exec",),
    side_effects=("processes",),
    plain_arguments=("action", "sessionId"),
    layer="base",
    stage="run",
    intent="look after a command that goes on in the background",
)


def build_process_tool(background: "Background") -> Tool:
    """The tool process. What it is done with is loaded on first use."""

    def run(context: CommandContext, arguments: ProcessArguments) -> Output:
        from handrail.tools.processing import run_process_action  # noqa: PLC0415  as said

        return run_process_action(context, arguments, background)

    return Tool(PROCESS, run, _touches, _preview, context=CommandContext)


def _touches(arguments: ProcessArguments) -> Touches:
    if problems := tuple(_problems(arguments)):
        raise build_argument_error(PROCESS, problems)
    data = arguments.data
    if data is not None and (size := len(data.encode("utf-8", "surrogatepass"))) > _MAX_WRITTEN_BYTES:
        message = (
            f"process: data is {size:,} bytes long, and {_MAX_WRITTEN_BYTES:,} is the most that is written at once."
        )
        raise ToolError("LIMIT_EXCEEDED", f"{message} Nothing was written. Write it in parts.")
    return Touches(process=ProcessUse(arguments.action, arguments.session_id or ""))


def _problems(arguments: ProcessArguments) -> list[Problem]:
    """What does not go together, all at once."""
    action, found = arguments.action, list[Problem]()
    if action == "list" and arguments.session_id is not None:
        found.append(Problem(field="sessionId", problem="sessionId is not for list, which names all"))
    if action != "list" and arguments.session_id is None:
        found.append(Problem(field="sessionId", problem=f"sessionId is required for {action}; list has the ids"))
    if action != "log":
        given = {"offset": arguments.offset, "limit": arguments.limit}
        found += [Problem(field=name, problem=f"{name} is for log only") for name in given if given[name] is not None]
    elif arguments.offset == 0:
        found.append(Problem(field="offset", problem="offset is 0; lines count from 1, and from -1 backwards"))
    if action == "write" and not arguments.data and not arguments.eof:
        found.append(Problem(field="data", problem="write needs data, or eof"))
    if action != "write":
        given = {"data": arguments.data is not None, "eof": arguments.eof}
        found += [Problem(field=name, problem=f"{name} is for write only") for name in given if given[name]]
    return found


def _preview(_: CommandContext, arguments: ProcessArguments) -> Preview:
    """What would be written, for the person who is asked."""
    end = "(and the end of its input)" if arguments.eof else ""
    return Preview(kind="input", text="\n".join(filter(None, (arguments.data, end))))
