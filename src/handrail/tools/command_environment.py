"""The sandbox of a session's commands, with their limits.

Every session has a `CommandEnvironment`, also one that never runs a command. So this module imports sandboxes late.
"""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.settings import Settings
from handrail.store.state_dir import SpillFolder

if TYPE_CHECKING:
    from handrail.sandbox.profile import ResourceLimits, SandboxHost
    from handrail.sandbox.sandbox import CommandSandbox
    from handrail.workspace.roots import Root
    from handrail.workspace.sensitive_paths import SensitivePaths


RESTRICTED_SECONDS = 3.0
_RESTRICTED_OUTPUT_BYTES = 256 * 1024


class CommandEnvironment:
    """The sandbox, the limits and the spill folder of one session's commands."""

    def __init__(
        self,
        settings: Settings,
        state: str,
        environ: Mapping[str, str],
        variables: Mapping[str, str] | None = None,
        sensitive_paths: "Callable[[], SensitivePaths] | None" = None,
    ) -> None:
        """`variables` replace those chosen from `environ`. `sensitive_paths` gets the cache that the workspace has."""
        self._settings = settings
        self._state = state
        self._environ = environ
        self._variables = variables
        self._get_sensitive_paths = sensitive_paths
        self._spill_folder: SpillFolder | None = None

    @property
    def tier(self) -> int:
        """The sandbox tier of commands here, without an overlay."""
        return self.sandbox.tier

    def find_tier(self, roots: "tuple[Root, ...]", *, background: bool = False) -> int:
        """The sandbox tier of a command that may change these roots: 3 if an overlay can lie over them."""
        if self.tier < 2 or background or self.find_overlay_obstacle(roots) is not None:
            return self.tier
        return 3

    def find_overlay_obstacle(self, roots: "tuple[Root, ...]") -> str | None:
        """Why no overlay can lie over these roots. None if one can."""
        writable = tuple(root.path for root in roots if root.writable)
        if obstacle := self.sandbox.find_overlay_obstacle(writable):
            return obstacle
        return self._find_foreign_owner(roots, writable) if self.sandbox.has_single_user(writable) else None

    def _find_foreign_owner(self, roots: "tuple[Root, ...]", writable: tuple[str, ...]) -> str | None:
        """Looks for a folder of another user or group: an overlay of one user cannot hold its changes.

        Only folders are checked. A foreign file shows when a command fails to change it, and the result says so.
        """
        foreign = self.sensitive_paths.find_foreign(roots)
        if foreign is None or not any(foreign == root or foreign.startswith(f"{root}/") for root in writable):
            return None
        return describe_foreign_owner(foreign)

    @cached_property
    def sandbox(self) -> "CommandSandbox":
        from handrail.sandbox.sandbox import CommandSandbox  # noqa: PLC0415  see above

        _ = self.spill_folder  # first: it tells the next session that this one may have left a sandbox
        chosen = self._settings.sandbox
        return CommandSandbox(self.host, most=chosen.tier, least=chosen.least)

    @cached_property
    def host(self) -> "SandboxHost":
        from handrail.sandbox.profile import SandboxHost  # noqa: PLC0415  see above

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
        from handrail.sandbox.environment import build_approved_host  # noqa: PLC0415  see above

        return build_approved_host(host, self._variables)

    def variables(self, roots: "tuple[Root, ...]") -> dict[str, str]:
        from handrail.sandbox.environment import list_approved_variables  # noqa: PLC0415  see above

        return list_approved_variables(self.host, tuple(root.path for root in roots))

    @cached_property
    def sensitive_paths(self) -> "SensitivePaths":
        """The paths that commands must not see."""
        if self._get_sensitive_paths is not None:
            return self._get_sensitive_paths()
        from handrail.workspace.sensitive_paths import SensitivePaths  # noqa: PLC0415  see above

        return SensitivePaths()

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        return self._settings.network.allow

    def limits(self, timeout_ms: int | None, *, restricted: bool) -> "ResourceLimits":
        from handrail.sandbox.profile import build_limits  # noqa: PLC0415  see above

        limits = build_limits(self._settings.limits, timeout_ms)
        if not restricted:
            return limits
        seconds, output = min(limits.seconds, RESTRICTED_SECONDS), min(limits.output, _RESTRICTED_OUTPUT_BYTES)
        return replace(limits, seconds=seconds, output=output, spilled=0)

    @property
    def spill_folder(self) -> str:
        """The folder for output that memory does not hold."""
        if self._spill_folder is None:
            self._spill_folder = SpillFolder(self._state)
            self.kill_orphans()
        return self._spill_folder.path

    def kill_orphans(self) -> None:
        """Ends what killed processes of any session left of their commands. Usually this only lists a folder."""

        def kill() -> None:
            from handrail.process.tree import kill_orphans  # noqa: PLC0415  hardly ever needed

            kill_orphans()

        SpillFolder.remove_stale(self._state, kill)

    def close(self) -> None:
        """Removes the spill folder, and waits until no overlay is left."""
        if self._spill_folder is not None:
            self._spill_folder.close()
        if "sandbox" in self.__dict__:  # else no command was run
            self.sandbox.close()


def describe_foreign_owner(folder: str) -> str:
    """The reason against an overlay over a folder of another user or group."""
    return f"{folder} belongs to another user or group, and an overlay could not change it"
