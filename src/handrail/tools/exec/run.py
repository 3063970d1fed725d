"""Runs a command to its end."""

import contextlib
import os
import shutil
import threading
from typing import Self

import msgspec
from msgspec.structs import replace

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.parse import ParsedCommand
from handrail.process.output import Update, Updates, clean_output
from handrail.process.result import CommandResult
from handrail.process.run import run_launch
from handrail.protocol.decisions import CommandFact
from handrail.protocol.errors import StoreError, ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay.overlay import NOT_MOUNTED, Overlay
from handrail.sandbox.profile import SandboxProfile
from handrail.sandbox.proxy.handover import build_socket_folder
from handrail.sandbox.proxy.proxy import Attempt, Proxy
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.tool import CommandContext
from handrail.workspace.facts import build_command_fact

# § [tools.running] Runs a command to its end: confined, watched and told of, with what is open to it of the
# § network.

"""Looks whether a command may begin, while its sandbox is made; raises where it may not."""
_WEAKER = "The sandbox that this was decided for does not work any more, and what is left confines less."


class NetworkedRun(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went, and what it had of the network."""

    ran: CommandResult
    profile: SandboxProfile
    blocked: tuple[str, ...] = ()
    """What it tried to reach and did not, in words."""
    reached: tuple[str, ...] = ()
    """What it reached: `example.org:443`."""


def run_command(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    *,
    hosts: tuple[str, ...] = (),
    overlay: Overlay | None = None,
) -> NetworkedRun:
    """Runs it, under its overlay if it has one. ToolError if it could not be started as it must be."""
    if not hosts:
        return NetworkedRun(ran=_run(context, todo, profile, commands, overlay), profile=profile)

    tried = ConnectionLog(context)
    with OpenNetwork(tried, hosts, commands.spill_folder) as network:
        profile = network.confine(profile)
        ran = _run(context, todo, profile, commands, overlay)
    ran = replace(ran, warnings=(*ran.warnings, *tried.warnings))
    return NetworkedRun(ran=ran, profile=profile, blocked=tried.blocked_messages, reached=tried.reached)


def _run(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    overlay: Overlay | None,
) -> CommandResult:
    folder = commands.spill_folder  # first: who has a launch must run it
    ran = run_launch(
        prepare_launch(context, todo, profile, commands, overlay),
        limits=profile.limits,
        cancelled=context.cancelled,
        on_output=build_updates(context).feed,
        spill_folder=folder,
        two_pipes=context.limits.restricted,
    )
    check_ran(ran, commands, overlay)
    return ran


def check_ran(ran: CommandResult, commands: CommandEnvironment, overlay: Overlay | None = None) -> None:
    """ToolError where the sandbox could not be made, so that the command never ran."""
    if ran.ending == "failed":
        remove_spill_files(ran)
        raise commands.sandbox.explain_failure(
            _why_not(ran) if overlay is None else clean_output(ran.output.head), overlay
        )


def watch_disk(
    context: CommandContext, profile: SandboxProfile, overlay: Overlay, most: int | None = None
) -> SandboxProfile:
    """The profile of a command that is stopped if it writes more than `most` to its overlay. Without `most` the limit
    is its own, unless somebody approved the command or its mode allows bulk changes."""
    if most is None and (context.answered or context.limits.bulk):
        return profile
    limits, uppers = profile.limits, tuple(over.upper for over in overlay.overlaid)
    return replace(profile, limits=replace(limits, disk=limits.disk if most is None else most, uppers=uppers))


def prepare_launch(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    overlay: Overlay | None = None,
) -> Launch:
    """The command, ready to be started in no weaker a sandbox than it was decided for."""
    launch = commands.sandbox.launch(profile, todo.bash_text, overlay)
    if launch.tier < min(require_command_fact(context).tier, 2):
        launch.close()
        raise build_weaker_sandbox_error()
    return launch


def build_weaker_sandbox_error() -> ToolError:
    """The refusal of a command that was decided for a better sandbox than there is by now."""
    return ToolError("CONFLICT", f"{_WEAKER} Nothing was run. Call again.")


def build_updates(context: CommandContext) -> Updates:
    """What tells live views how it goes on."""

    def tell(update: Update) -> None:
        with contextlib.suppress(StoreError):  # nobody has to see how it goes on
            context.metadata(output=update.text, **({"skipped": update.skipped} if update.skipped else {}))

    return Updates(tell)


def require_command_fact(context: CommandContext) -> CommandFact:
    """What was judged."""
    fact = context.facts.command
    if fact is None:
        raise AssertionError("a command was judged before it runs")
    return fact


def resolve_cwd(context: CommandContext, cwd: str) -> str:
    """Where it starts, without the links on the way."""
    fact = build_command_fact(context.workspace, cwd, "read")
    if fact.real is None or fact.kind != "directory":
        raise ToolError("CONFLICT", f"The folder {cwd[:200]} was moved or removed a moment ago. Nothing was run.")
    return fact.real


def remove_spill_files(ran: CommandResult) -> None:
    """Removes the files of what it printed, where nobody will ask for them."""
    for printed in (ran.output, ran.errors):
        if printed is not None and printed.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(printed.spilled)


def _why_not(ran: CommandResult) -> str:
    """Why the sandbox could not be made, without the paths that bubblewrap names; of an overlay, all that was said."""
    printed = clean_output(ran.output.head if ran.errors is None else ran.output.head + ran.errors.head).strip()
    if NOT_MOUNTED in printed:
        return printed
    return printed.rpartition("\n")[2].rpartition(": ")[2]


# § [tools.network] The network of one command: a proxy to what is open to it, and what it tried to reach.

MAX_BLOCKED_ATTEMPTS = 1_000
"""Of one command, each an event; those after them are counted, and the result says how many. Whatever is let through
is an event, however much it is."""
_MAX_BLOCKED_HOSTS = 5
"""Hosts in a result that were blocked; the events have them all."""
_MAX_REACHED_HOSTS = 20
"""Hosts in a result that were told something; an entry with a wildcard may stand for any number."""


class ConnectionLog:
    """What a command tried to reach: told as it comes, and in short at the end."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        command = context.facts.command
        self._approved = frozenset(command.hosts if command is not None and context.answered else ())
        self._lock = threading.Lock()
        self._refused = 0
        self._blocked: dict[str, None] = {}
        self._reached: dict[str, None] = {}

    @property
    def reached(self) -> tuple[str, ...]:
        """The hosts that something was sent to, each once: `example.org:443`."""
        return tuple(self._reached)

    @property
    def blocked_messages(self) -> tuple[str, ...]:
        """What the model is told: what was blocked, each host once."""
        blocked = list(self._blocked)
        least = "at least " if len(blocked) == MAX_BLOCKED_ATTEMPTS else ""
        more = (
            [f"{least}{len(blocked) - _MAX_BLOCKED_HOSTS:,} more hosts were blocked"]
            if len(blocked) > _MAX_BLOCKED_HOSTS
            else []
        )
        return (*blocked[:_MAX_BLOCKED_HOSTS], *more)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person is told: how many attempts have no event of their own."""
        untold = self._refused - MAX_BLOCKED_ATTEMPTS
        if untold <= 0:
            return ()
        return (
            f"{untold:,} attempts were blocked, after the first {MAX_BLOCKED_ATTEMPTS:,}, that are no events of their"
            " own.",
        )

    def add(self, attempt: Attempt) -> None:
        """In whatever thread."""
        if not attempt.allowed and not self._is_worth_telling(attempt):
            return
        reason = attempt.reason or self._why_open(attempt)
        self._context.report_connection(
            attempt.host, attempt.port, attempt.allowed, reason
        )  # fails: nothing is let through
        if attempt.allowed:
            self._note_reached(attempt)

    def _note_reached(self, attempt: Attempt) -> None:
        with self._lock:
            if len(self._reached) < _MAX_REACHED_HOSTS:
                self._reached.setdefault(_address(attempt))

    def _is_worth_telling(self, blocked: Attempt) -> bool:
        with self._lock:
            self._refused += 1
            if len(self._blocked) < MAX_BLOCKED_ATTEMPTS:  # a command can make up any number
                self._blocked.setdefault(describe_attempt(blocked))
            return self._refused <= MAX_BLOCKED_ATTEMPTS

    def _why_open(self, attempt: Attempt) -> str:
        return "a person said yes to it" if _address(attempt) in self._approved else "network.allow lists it"


class OpenNetwork:
    """A proxy as long as a command runs. Its socket is in a folder of its own, in one that is removed with the session,
    or, after a crash, by the next one."""

    def __init__(self, tried: ConnectionLog, hosts: tuple[str, ...], folder: str) -> None:
        self._hosts = hosts
        self._folder = build_socket_folder(folder)
        try:
            self._proxy = Proxy(self._folder, Allowlist.from_entries(hosts), tried.add)
        except OSError as error:
            message = f"The network could not be opened to the command ({error.strerror}). Nothing was run. Try again."
            raise ToolError("UNAVAILABLE", message) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def confine(self, profile: SandboxProfile) -> SandboxProfile:
        """The profile of a command that has this, and nothing else, of the network."""
        return msgspec.structs.replace(profile, proxy=self._proxy.path, listed=self._hosts)

    def close(self) -> None:
        """Ends every connection; all that was tried is told then. Can be repeated."""
        self._proxy.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _address(attempt: Attempt) -> str:
    host = f"[{attempt.host}]" if ":" in attempt.host else attempt.host
    return f"{host}:{attempt.port}"


def describe_attempt(attempt: Attempt) -> str:
    """An attempt that was not let through: `blocked: example.org:443 is not listed`."""
    if not attempt.host:
        return f"blocked: a request to the proxy: {attempt.reason}"
    where = f"{attempt.host}:{attempt.port}" if attempt.port else attempt.host
    if attempt.reason.startswith(f"{attempt.host} "):
        return f"blocked: {where}{attempt.reason.removeprefix(attempt.host)}"
    return f"blocked: {where}: {attempt.reason}"
