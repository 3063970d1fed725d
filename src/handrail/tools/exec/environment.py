"""The sandbox, limits and hidden files of a session's commands."""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from handrail.settings import Settings
from handrail.store.state_dir import SpillFolder

if TYPE_CHECKING:
    from handrail.policy.parse import ParsedCommand
    from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
    from handrail.sandbox.sandbox import CommandSandbox
    from handrail.tools.tool import CommandContext
    from handrail.workspace.roots import Root
    from handrail.workspace.sensitive_paths import SensitivePaths


RESTRICTED_SECONDS = 3.0
_RESTRICTED_OUTPUT_BYTES = 256 * 1024


def describe_foreign_owner(folder: str) -> str:
    """Why there is no overlay where a folder of others lies in the workspace."""
    return f"{folder} belongs to another user or group, and nothing in it could be changed under an overlay"


class CommandEnvironment:
    """The sandbox, the limits and the hidden files of one session's commands."""

    def __init__(
        self,
        settings: Settings,
        state: str,
        environ: Mapping[str, str],
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`variables`: what commands get, in the place of what would be chosen from the environment."""
        self._settings = settings
        self._state = state
        self._environ = environ
        self._variables = variables
        self._printed: SpillFolder | None = None

    @property
    def tier(self) -> int:
        """The sandbox that commands have here."""
        return self.sandbox.tier

    def tier_over(self, roots: "tuple[Root, ...]", *, background: bool = False) -> int:
        """The sandbox of a command that may change these roots: 3 where an overlay can lie over them."""
        if self.tier < 2 or background or self.why_no_layer(roots) is not None:
            return self.tier
        return 3

    def why_no_layer(self, roots: "tuple[Root, ...]") -> str | None:
        """Why what a command changes does not go into an overlay, in words; None where it does."""
        places = tuple(root.path for root in roots if root.writable)
        return self.sandbox.find_overlay_obstacle(places) or self._why_not_of_others(roots, places)

    def _why_not_of_others(self, roots: "tuple[Root, ...]", places: tuple[str, ...]) -> str | None:
        """What an overlay that knows one user cannot take in: a folder of another user or group. Such a file is found
        out when a command gets at it (see `sandbox.layer.hints`): not every file is looked at."""
        if not self.sandbox.has_single_user(places):
            return None
        foreign = self._withheld.foreign(roots)
        if foreign is None or not any(foreign == place or foreign.startswith(f"{place}/") for place in places):
            return None
        return describe_foreign_owner(foreign)

    @cached_property
    def sandbox(self) -> "CommandSandbox":
        """What confines them."""
        from handrail.sandbox.sandbox import CommandSandbox  # noqa: PLC0415  as said above

        _ = self.spill_folder  # first: it shows the next session that this one may have started a sandbox
        chosen = self._settings.sandbox
        return CommandSandbox(self.host, most=chosen.tier, least=chosen.least)

    def variables(self, roots: "tuple[Root, ...]") -> dict[str, str]:
        """The variables that a command gets that somebody said yes to."""
        from handrail.sandbox.environment import list_approved_variables  # noqa: PLC0415  as said above

        return list_approved_variables(self.host, tuple(root.path for root in roots))

    @cached_property
    def host(self) -> "SandboxHost":
        """The machine that they run on."""
        from handrail.sandbox.profile import SandboxHost  # noqa: PLC0415  as said above

        chosen = self._settings.sandbox
        host = SandboxHost(
            home=os.path.realpath(os.path.expanduser("~")),
            environ=self._environ,
            state=os.path.realpath(self._state),
            toolchains=tuple(map(os.path.expanduser, chosen.toolchains)),
            variables=chosen.environment,
        )
        if self._variables is None:
            return host
        from handrail.sandbox.environment import build_approved_host  # noqa: PLC0415  as said above

        return build_approved_host(host, self._variables)

    @property
    def spill_folder(self) -> str:
        """Where what they print is kept while they run."""
        if self._printed is None:
            self._printed = SpillFolder(self._state)
            self.end_left()
        return self._printed.path

    def end_left(self) -> None:
        """Ends what killed processes left of commands, whatever their session was. If there is nothing, this costs one
        look into a folder."""

        def kill() -> None:
            from handrail.process.tree import kill_orphans  # noqa: PLC0415  hardly ever needed

            kill_orphans()

        SpillFolder.remove_stale(self._state, kill)

    def close(self) -> None:
        """Removes what a command that was cut off left there, and waits until no overlay is left."""
        if self._printed is not None:
            self._printed.close()
        if "sandbox" in self.__dict__:  # else no command was run
            self.sandbox.close()

    def limits(self, timeout_ms: int | None, *, restricted: bool) -> "ResourceLimits":
        """How much one of them may use."""
        from handrail.sandbox.profile import build_limits  # noqa: PLC0415  as said above

        chosen = build_limits(self._settings.limits, timeout_ms)
        if not restricted:
            return chosen
        seconds, output = min(chosen.seconds, RESTRICTED_SECONDS), min(chosen.output, _RESTRICTED_OUTPUT_BYTES)
        return msgspec.structs.replace(chosen, seconds=seconds, output=output, spilled=0)

    def hosts_open_to(self, context: "CommandContext", todo: "ParsedCommand") -> tuple[str, ...]:
        """What a command may reach: what settings list, and what it named in the request that somebody said yes to.
        What only looks reaches nothing; without namespaces there is nothing to open, and a yes fails at its start."""
        command = context.facts.command
        if (
            todo.is_read_only
            or context.limits.restricted
            or context.limits.offline
            or command is None
            or command.tier == 0
        ):
            return ()
        approved = command.hosts if context.answered else ()
        listed = self._settings.network.allow if command.tier >= 2 else ()
        return tuple(dict.fromkeys((*listed, *approved)))

    def build_profile(
        self, context: "CommandContext", cwd: str, timeout_ms: int | None, todo: "ParsedCommand"
    ) -> "SandboxProfile":
        """What a command may see and do that runs in a folder, named as results name it."""
        from handrail.sandbox.profile import SandboxProfile  # noqa: PLC0415  as said above
        from handrail.workspace.roots import check_roots  # noqa: PLC0415
        from handrail.workspace.sensitive_paths import list_read_only_paths  # noqa: PLC0415

        found = self._withheld.scan(context.workspace.roots)
        roots, proven = context.workspace.roots, todo.is_read_only
        writable = () if proven else tuple(root.path for root in roots if root.writable)
        check_roots(roots)  # last: the sandbox goes by the names
        seen = context.answered and not proven
        hidden, hidden_folders = ((), ()) if seen else (found.credentials, found.credential_folders)
        if _shows_tracked(context, todo):
            hidden, hidden_folders = _not_tracked(hidden, roots), _not_tracked(hidden_folders, roots)
        return SandboxProfile(
            origin="proven" if proven else "approved" if context.answered else "unasked",
            cwd=os.path.normpath(os.path.join(context.workspace.main.path, cwd)),
            read_only=tuple(root.path for root in roots if root.path not in writable),
            writable=writable,
            read_only_paths=() if proven else list_read_only_paths(roots),
            # Into a pipe even that may be written which is otherwise read-only.
            hidden_files=(*found.sockets, *(found.pipes if proven else ()), *hidden),
            hidden_folders=hidden_folders,
            git_settings=_git_settings(found.configs, todo) if proven else (),
            limits=self.limits(timeout_ms, restricted=context.limits.restricted),
        )

    def tracked_credentials(self, roots: "tuple[Root, ...]") -> frozenset[str]:
        """The credentials in the roots that git tracks."""
        found = self._withheld.scan(roots)
        return _tracked((*found.credentials, *found.credential_folders), roots)

    @cached_property
    def _withheld(self) -> "SensitivePaths":
        from handrail.workspace.sensitive_paths import SensitivePaths  # noqa: PLC0415  as said above

        return SensitivePaths()


def _git_settings(configs: tuple[str, ...], todo: "ParsedCommand") -> tuple[tuple[str, str], ...]:
    if not any(program.split()[0] == "git" for program in todo.programs):
        return ()
    from handrail.workspace.facts import build_driver_settings  # noqa: PLC0415  as said above

    return build_driver_settings(configs)


def _shows_tracked(context: "CommandContext", todo: "ParsedCommand") -> bool:
    """Whether a command sees credentials that git tracks: to git, an empty file in their place would be a change, which
    it would show, with what was there before, and commit. Without an overlay nobody could drop that commit."""
    command = context.facts.command
    if todo.is_read_only or command is None:
        return todo.compares_with_git
    return todo.git_use != "none" or command.yields or not command.has_overlay


def _not_tracked(credentials: tuple[str, ...], roots: "tuple[Root, ...]") -> tuple[str, ...]:
    known = _tracked(credentials, roots)
    return tuple(path for path in credentials if path not in known)


def _tracked(credentials: tuple[str, ...], roots: "tuple[Root, ...]") -> frozenset[str]:
    if not credentials:
        return frozenset()
    from handrail.workspace.facts import list_tracked  # noqa: PLC0415  as said above

    return list_tracked(credentials, [root.path for root in roots])
