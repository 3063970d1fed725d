"""Runs one command in its sandbox to the end, with the hosts that are open to it."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property

import msgspec
from msgspec.structs import replace

from handrail.changes.recorder import Recorder
from handrail.policy.network.allowlist import Allowlist
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.process.output import Update, Updates, clean_output
from handrail.process.result import CapturedOutput, CommandResult
from handrail.process.run import run_launch
from handrail.protocol.decisions import CommandFact
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.titles import describe_running_call
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay.overlay import NOT_MOUNTED, Overlay
from handrail.sandbox.profile import ResourceLimits, SandboxProfile
from handrail.sandbox.proxy.handover import build_socket_folder
from handrail.sandbox.proxy.proxy import Attempt, Proxy
from handrail.tools.command_environment import CommandEnvironment
from handrail.tools.exec.spec import ExecArguments
from handrail.tools.tool import Background, CommandContext, Output
from handrail.workspace.facts import build_command_fact, build_driver_settings, list_tracked
from handrail.workspace.roots import Root, check_roots
from handrail.workspace.sensitive_paths import MaskedPaths, list_read_only_paths

# The network: a proxy to the hosts that are open to the command

MAX_BLOCKED_ATTEMPTS = 1_000
"""Blocked attempts of one command that become events. The result counts the others."""
_MAX_BLOCKED_HOSTS = 5
"""Blocked hosts that a result names. The events name them all."""
_MAX_REACHED_HOSTS = 20
"""Reached hosts that a result names: an entry with a wildcard may stand for any number."""


class ConnectionLog:
    """The attempts of a command to reach hosts: each one an event, a summary at the end."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        command = context.facts.command
        self._approved = frozenset(command.hosts if command is not None and context.answered else ())
        self._lock = threading.Lock()
        self._blocked_attempts = 0
        self._blocked: dict[str, None] = {}
        self._reached: dict[str, None] = {}

    def add(self, attempt: Attempt) -> None:
        """Logs an attempt, from any thread. If this raises, the proxy lets nothing through."""
        if not attempt.allowed and not self._count_blocked(attempt):
            return
        reason = attempt.reason or (
            "a person approved it" if _spell_address(attempt) in self._approved else "network.allow lists it"
        )
        self._context.report_connection(attempt.host, attempt.port, attempt.allowed, reason)
        if attempt.allowed:
            with self._lock:
                if len(self._reached) < _MAX_REACHED_HOSTS:
                    self._reached.setdefault(_spell_address(attempt))

    def _count_blocked(self, attempt: Attempt) -> bool:
        """Counts a blocked attempt, and returns whether it becomes an event."""
        with self._lock:
            self._blocked_attempts += 1
            if len(self._blocked) < MAX_BLOCKED_ATTEMPTS:  # a command can make up any number of hosts
                self._blocked.setdefault(describe_attempt(attempt))
            return self._blocked_attempts <= MAX_BLOCKED_ATTEMPTS

    @property
    def reached(self) -> tuple[str, ...]:
        """The hosts that data was sent to, each once: `example.org:443`."""
        return tuple(self._reached)

    @property
    def blocked_messages(self) -> tuple[str, ...]:
        """What the model reads about blocked hosts, each host once."""
        blocked = list(self._blocked)
        if len(blocked) <= _MAX_BLOCKED_HOSTS:
            return tuple(blocked)
        least = "at least " if len(blocked) == MAX_BLOCKED_ATTEMPTS else ""
        more = f"{least}{len(blocked) - _MAX_BLOCKED_HOSTS:,} more hosts were blocked"
        return (*blocked[:_MAX_BLOCKED_HOSTS], more)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person reads about attempts without an event."""
        unreported = self._blocked_attempts - MAX_BLOCKED_ATTEMPTS
        if unreported <= 0:
            return ()
        after = f"after the first {MAX_BLOCKED_ATTEMPTS:,}"
        return (f"{unreported:,} attempts were blocked, {after}, without own events.",)


@contextmanager
def _open_network(
    profile: SandboxProfile, hosts: tuple[str, ...], log: ConnectionLog, folder: str
) -> Generator[SandboxProfile]:
    """Runs a proxy to the hosts. Yields the profile with this proxy as its only network.

    The socket has a folder of its own in `folder`. At the end all connections are closed, and all attempts are logged.
    """
    socket_folder = build_socket_folder(folder)
    try:
        proxy = Proxy(socket_folder, Allowlist.from_entries(hosts), log.add)
    except OSError as error:
        message = f"The network could not be opened to the command ({error.strerror}). Nothing was run. Try again."
        raise ToolError("UNAVAILABLE", message) from None
    try:
        yield replace(profile, proxy=proxy.path, listed=hosts)
    finally:
        proxy.close()
        shutil.rmtree(socket_folder, ignore_errors=True)


def _spell_address(attempt: Attempt) -> str:
    host = f"[{attempt.host}]" if ":" in attempt.host else attempt.host
    return f"{host}:{attempt.port}"


def describe_attempt(attempt: Attempt) -> str:
    """A blocked attempt: `blocked: example.org:443 is not listed`."""
    if not attempt.host:
        return f"blocked: a request to the proxy: {attempt.reason}"
    where = f"{attempt.host}:{attempt.port}" if attempt.port else attempt.host
    return f"blocked: {where} {attempt.problem}" if attempt.problem else f"blocked: {where}: {attempt.reason}"


_MAX_SUMMARY_CHARS = 200


class CommandRun(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """One call of exec. What follows from the call is worked out when it is first needed."""

    context: CommandContext
    arguments: ExecArguments
    environment: CommandEnvironment
    background: Background
    recorder: Recorder
    render: Callable[[Output, CommandResult], Output] | None = None
    """Makes the output of another tool from that of exec."""

    @cached_property
    def fact(self) -> CommandFact:
        return _require_fact(self.context)

    @cached_property
    def command(self) -> ParsedCommand:
        return parse_fact(self.fact)

    @cached_property
    def is_proven(self) -> bool:
        return self.command.is_read_only

    @cached_property
    def limits(self) -> ResourceLimits:
        return self.environment.limits(self.arguments.timeout_ms, restricted=self.context.limits.restricted)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts open to the command: those of the settings, and those that a person approved for this call.

        Below tier 2 the settings open none, and a launch that needs an approved host fails.
        """
        limits = self.context.limits
        if self.is_proven or limits.restricted or limits.offline or self.fact.tier == 0:
            return ()
        approved = self.fact.hosts if self.context.answered else ()
        listed = self.environment.allowed_hosts if self.fact.tier >= 2 else ()
        return tuple(dict.fromkeys((*listed, *approved)))

    @cached_property
    def shares_network(self) -> bool:
        """Whether the command may share the network of the session's background processes.

        They could use its proxy. So it has its own network if a person opened hosts to it that settings do not list.
        """
        limits, listed = self.context.limits, self.environment.allowed_hosts
        if self.fact.tier < 2 or limits.restricted or limits.offline or not set(self.hosts).issubset(listed):
            return False
        return not self.is_proven or self.command.reads_loopback

    @contextmanager
    def open_shared_network(self) -> Generator[int | None]:
        """The network of the session's running background processes. None if the command does not share one."""
        is_shared = self.shares_network and os.path.isdir(self.background.folder)
        with self.background.sessions.open_network() if is_shared else contextlib.nullcontext() as network:
            yield network

    @cached_property
    def profile(self) -> SandboxProfile:
        """What the command may see and do, without its network."""
        context, proven = self.context, self.is_proven
        workspace, roots = context.workspace, context.workspace.roots
        cwd = _resolve_cwd(self)
        masked = self.environment.sensitive_paths.scan(roots)
        check_roots(roots)  # last: the sandbox goes by the names
        writable = () if proven else tuple(root.path for root in roots if root.writable)
        hidden, hidden_folders = _list_hidden_credentials(self, masked)
        return SandboxProfile(
            origin="proven" if proven else "approved" if context.answered else "unasked",
            cwd=os.path.normpath(os.path.join(workspace.main.path, cwd)),
            read_only=tuple(root.path for root in roots if root.path not in writable),
            writable=writable,
            read_only_paths=() if proven else list_read_only_paths(roots),
            # A process can write to a named pipe that is mounted read-only.
            hidden_files=(*masked.sockets, *(masked.pipes if proven else ()), *hidden),
            hidden_folders=hidden_folders,
            git_settings=_build_git_settings(self.command, masked.configs) if proven else (),
            limits=self.limits,
            sockets=proven and self.command.reads_loopback,
        )


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A command that has ended."""

    result: CommandResult
    profile: SandboxProfile
    blocked: tuple[str, ...] = ()
    """Sentences about the hosts that it did not reach."""
    reached: tuple[str, ...] = ()
    """The hosts that it reached: `example.org:443`."""


def run_command(
    run: CommandRun,
    profile: SandboxProfile,
    *,
    overlay: Overlay | None = None,
    hosts: tuple[str, ...] = (),
    joins: bool = False,
) -> FinishedRun:
    """Runs the command, in its overlay if it has one. ToolError if it cannot start as it must.

    `joins`: whether it shares the network of running background processes, if it may. A preview does not.
    """
    with run.open_shared_network() if joins else contextlib.nullcontext() as network:
        profile = replace(profile, joined=network is not None)
        if not hosts:
            return build_finished_run(_run_launch(run, profile, overlay, network), profile)
        log = ConnectionLog(run.context)
        with _open_network(profile, hosts, log, run.environment.spill_folder) as open_profile:
            result = _run_launch(run, open_profile, overlay, network)
        return build_finished_run(result, open_profile, log)


def build_finished_run(result: CommandResult, profile: SandboxProfile, log: ConnectionLog | None = None) -> FinishedRun:
    if log is None:
        return FinishedRun(result=result, profile=profile)
    result = replace(result, warnings=(*result.warnings, *log.warnings))
    return FinishedRun(result=result, profile=profile, blocked=log.blocked_messages, reached=log.reached)


def _run_launch(
    run: CommandRun, profile: SandboxProfile, overlay: Overlay | None, network: int | None
) -> CommandResult:
    context = run.context
    folder = run.environment.spill_folder  # before the launch, which has to be run once it is there
    result = run_launch(
        prepare_launch(run, profile, overlay, network),
        limits=profile.limits,
        cancelled=context.cancelled,
        on_output=build_updates(context).feed,
        spill_folder=folder,
        two_pipes=context.limits.splits_streams,
    )
    _check_started(run, result, overlay)
    return result


def prepare_launch(
    run: CommandRun, profile: SandboxProfile, overlay: Overlay | None = None, network: int | None = None
) -> Launch:
    """The launch of the command, in no weaker a sandbox than the one it was decided for."""
    launch = run.environment.sandbox.launch(profile, run.command.bash_text, overlay, network)
    if launch.tier < min(run.fact.tier, 2):
        launch.close()
        raise build_weaker_sandbox_error()
    return launch


def build_weaker_sandbox_error() -> ToolError:
    """The refusal of a command that was decided for a better sandbox than there is now."""
    message = "The sandbox of the decision no longer works, and the remaining sandbox is weaker."
    return ToolError("CONFLICT", f"{message} Nothing was run. Call again.")


def _check_started(run: CommandRun, result: CommandResult, overlay: Overlay | None = None) -> None:
    """ToolError if the sandbox could not be made, so that the command never ran."""
    if result.ending == "failed":
        remove_spill_files(result)
        printed = _extract_sandbox_error(result) if overlay is None else clean_output(result.output.head)
        raise run.environment.sandbox.explain_failure(printed, overlay)


def _extract_sandbox_error(result: CommandResult) -> str:
    """The last words of bubblewrap, without its paths. Of a failed mount, all that was printed."""
    head = result.output.head if result.errors is None else result.output.head + result.errors.head
    printed = clean_output(head).strip()
    return printed if NOT_MOUNTED in printed else printed.rpartition("\n")[2].rpartition(": ")[2]


def build_updates(context: CommandContext) -> Updates:
    """Sends new output to live views, with the command as the title."""
    command = context.facts.command

    def send(update: Update) -> None:
        title = None if command is None else describe_running_call("exec", {"command": command.text})
        with contextlib.suppress(StoreError):  # the result will have all of it
            more = {"skipped": update.skipped} if update.skipped else {}
            context.metadata(title=title, output=update.text, **more)

    return Updates(send)


def _require_fact(context: CommandContext) -> CommandFact:
    fact = context.facts.command
    if fact is None:
        raise AssertionError("a command was judged before it runs")
    return fact


def summarize_command(context: CommandContext) -> str:
    return _require_fact(context).text[:_MAX_SUMMARY_CHARS]


@contextlib.contextmanager
def discard_output_on_error(result: CommandResult) -> Generator[None]:
    """Removes the spill files of a result if the work on it fails."""
    try:
        yield
    except BaseException:
        remove_spill_files(result)
        raise


def remove_spill_files(result: CommandResult) -> None:
    for output in (result.output, result.errors):
        if output is not None:
            remove_spill_file(output)


def remove_spill_file(output: CapturedOutput) -> None:
    if output.spilled is not None:
        with contextlib.suppress(OSError):
            os.unlink(output.spilled)


# The profile.


def _resolve_cwd(run: CommandRun) -> str:
    """The folder that the command starts in, without the links on the way."""
    cwd = run.fact.cwd
    fact = build_command_fact(run.context.workspace, cwd, "read")
    if fact.real is None or fact.kind != "directory":
        raise ToolError("CONFLICT", f"The folder {cwd[:200]} was moved or removed a moment ago. Nothing was run.")
    return fact.real


def _list_hidden_credentials(run: CommandRun, masked: MaskedPaths) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The credential files and folders that are hidden from the command: none from an approved one."""
    if run.context.answered and not run.is_proven:
        return (), ()
    files, folders = masked.credentials, masked.credential_folders
    if not _sees_tracked_credentials(run):
        return files, folders
    tracked = list_tracked_credentials(masked, run.context.workspace.roots)
    return tuple(path for path in files if path not in tracked), tuple(path for path in folders if path not in tracked)


def _sees_tracked_credentials(run: CommandRun) -> bool:
    """Whether the command sees credentials that git tracks.

    To git, an empty file in their place is a change. It would show the old content, and commit the empty file. Without
    an overlay that commit could not be dropped.
    """
    if run.is_proven:
        return run.command.compares_with_git
    return run.command.git_use != "none" or run.fact.yields or not run.fact.has_overlay


def list_tracked_credentials(masked: MaskedPaths, roots: tuple[Root, ...]) -> frozenset[str]:
    credentials = (*masked.credentials, *masked.credential_folders)
    return list_tracked(credentials, [root.path for root in roots]) if credentials else frozenset()


def _build_git_settings(command: ParsedCommand, configs: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if not any(program.split()[0] == "git" for program in command.programs):
        return ()
    return build_driver_settings(configs)
