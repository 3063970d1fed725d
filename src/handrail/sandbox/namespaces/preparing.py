"""Puts together what tier 2 needs for a command, and keeps what is the same for the next."""

import os
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from handrail.protocol.errors import ToolError
from handrail.sandbox.bash import find_bash
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.filters.filter import require_filter
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer.layer import Overlay
from handrail.sandbox.namespaces.arguments import build_arguments
from handrail.sandbox.namespaces.bubblewrap import SYSTEM_PROGRAMS, Bubblewrap
from handrail.sandbox.namespaces.guard import build_limit_script
from handrail.sandbox.namespaces.launching import PreparedCommand, encode_arguments, launch_namespaced
from handrail.sandbox.namespaces.nothing import make_empty_placeholders
from handrail.sandbox.variables.environment import build_environment
from handrail.sandbox.view.gathering import collapse_hidden
from handrail.sandbox.view.mounts import is_shown, is_within
from handrail.sandbox.view.presence import drop_missing
from handrail.sandbox.view.view import BaseView, build_base_view, build_view

_MAX_KEPT_PROFILES = 32
_MAX_HIDDEN_PATHS = 2_000
"""Bubblewrap takes 9,000 arguments, three for each."""


class _Kept(NamedTuple):
    around: BaseView
    prepared: PreparedCommand


class BubblewrapBackend:
    """Prepares commands for one program and one host."""

    def __init__(self, program: Bubblewrap, host: SandboxHost) -> None:
        self.program = program
        self._host = host
        self._kept: dict[SandboxProfile, _Kept] = {}

    def launch(
        self, profile: SandboxProfile, text: str, overlay: Overlay | None = None, *, waits: bool = False
    ) -> Launch:
        """The command, ready to be started. `waits`: it is to be let begin, where the program can wait for that."""
        chosen = collapse_hidden(drop_missing(profile))
        prepared = self._prepared_alone(chosen) if chosen.proxy or chosen.variables else self._prepared(chosen)
        return launch_namespaced(prepared, text, overlay, waits=waits and "--block-fd" in self.program.options)

    def _prepared(self, profile: SandboxProfile) -> PreparedCommand:
        around = build_base_view(self._host, profile.roots)
        kept = self._kept.get(profile)
        if kept is None or kept.around is not around:
            kept = _Kept(around, self._prepare(profile, around))
            if len(self._kept) >= _MAX_KEPT_PROFILES:
                self._kept.clear()
            self._kept[profile] = kept
        return kept.prepared

    def _prepared_alone(self, profile: SandboxProfile) -> PreparedCommand:
        """Not kept: every call has a proxy of its own, and variables of its own are secrets."""
        prepared = self._prepare(profile, build_base_view(self._host, profile.roots))
        own = (*_handing_over(profile), *map(_exported, profile.variables))
        return prepared._replace(limiting="; ".join((prepared.limiting, *own)))

    def _prepare(self, profile: SandboxProfile, around: BaseView) -> PreparedCommand:
        self._check(profile)
        view = build_view(profile, around)
        told = build_arguments(self.program, view, self._nothing(), profile.limits)
        return PreparedCommand(
            program=self.program.path,
            arguments=encode_arguments((*told, "--chdir", profile.cwd)),
            bash=find_bash(self._host.environ.get("PATH", ""), partial(_is_shown, around)),
            environment=around.with_ripgrep(build_environment(profile, self._host, lambda path: is_shown(view, path))),
            filter=require_filter(profile.origin, 2),
            limiting=build_limit_script(profile.limits),
        )

    def _check(self, profile: SandboxProfile) -> None:
        hidden = len(profile.hidden_files) + len(profile.hidden_folders) + len(profile.read_only_paths)
        if hidden > _MAX_HIDDEN_PATHS:
            raise ToolError(
                "LIMIT_EXCEEDED",
                f"The workspace holds {hidden:,} credentials, sockets and protected files, and {_MAX_HIDDEN_PATHS:,}"
                " can be kept from a command. Nothing was run. Ask the person to remove some, or to open a smaller"
                " folder.",
            )
        program = os.path.realpath(self.program.path)
        if self.program.path not in SYSTEM_PROGRAMS and any(is_within(program, root) for root in profile.writable):
            text = (
                f"Bubblewrap at {program} lies in the workspace, where anybody could have written it. Nothing was run."
            )
            raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Install it on the system.")

    def _nothing(self) -> str:
        try:
            return make_empty_placeholders(self._host.state)
        except OSError as error:
            raise ToolError(
                "SANDBOX_UNAVAILABLE", f"The state folder cannot be used: {error}. Nothing was run."
            ) from None


def _handing_over(profile: SandboxProfile) -> Iterator[str]:
    if not profile.proxy:
        return
    from handrail.sandbox.proxy.inside import build_handover_command  # noqa: PLC0415  few commands have one
    from handrail.sandbox.view.interpreter import find_interpreter  # noqa: PLC0415  as above

    if profile.is_read_only:
        raise ValueError("a command that only looks may open no socket, so no proxy either")
    yield build_handover_command(find_interpreter())


def _exported(variable: tuple[str, str]) -> str:
    """By the guard's script, which nobody else reads: in bubblewrap's own environment, one that steers the loader would
    be in force outside of the sandbox."""
    name, value = variable
    quoted = value.replace("'", "'\\''")
    return f"export {name}='{quoted}'"


def _is_shown(around: BaseView, program: str) -> bool:
    """Whether every command sees it, whatever its roots are: then no agent can have written it."""
    return around.shows(program) and around.shows(os.path.realpath(program))
