"""Puts together what tier 2 needs for a command, and keeps what is the same for the next."""

import os
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from handrail.protocol.error import ToolError
from handrail.sandbox.bash import find_bash
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.filters.filter import filter_or_refusal
from handrail.sandbox.host import Host
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.namespaces.arguments import arguments
from handrail.sandbox.namespaces.bubblewrap import SYSTEM_PROGRAMS, Bubblewrap
from handrail.sandbox.namespaces.guard import limiting
from handrail.sandbox.namespaces.launching import Prepared, as_read, launch_namespaced
from handrail.sandbox.namespaces.nothing import nothing_in
from handrail.sandbox.variables.environment import environment_for
from handrail.sandbox.view.gathering import gathered
from handrail.sandbox.view.mounts import shows, within
from handrail.sandbox.view.presence import as_it_is
from handrail.sandbox.view.view import Surroundings, surroundings, view_of

_MOST_KEPT = 32
_MOST_HIDDEN = 2_000
"""Bubblewrap takes 9,000 arguments, three for each."""


class _Kept(NamedTuple):
    around: Surroundings
    prepared: Prepared


class Preparing:
    """Prepares commands for one program and one host."""

    def __init__(self, program: Bubblewrap, host: Host) -> None:
        self.program = program
        self._host = host
        self._kept: dict[Confinement, _Kept] = {}

    def launch(self, confinement: Confinement, text: str, layer: Layer | None = None, *, waits: bool = False) -> Launch:
        """The command, ready to be started. `waits`: it is to be let begin, where the program can wait for that."""
        chosen = gathered(as_it_is(confinement))
        prepared = self._prepared_alone(chosen) if chosen.proxy or chosen.variables else self._prepared(chosen)
        return launch_namespaced(prepared, text, layer, waits=waits and "--block-fd" in self.program.options)

    def _prepared(self, confinement: Confinement) -> Prepared:
        around = surroundings(self._host, confinement.roots)
        kept = self._kept.get(confinement)
        if kept is None or kept.around is not around:
            kept = _Kept(around, self._prepare(confinement, around))
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[confinement] = kept
        return kept.prepared

    def _prepared_alone(self, confinement: Confinement) -> Prepared:
        """Not kept: every call has a proxy of its own, and variables of its own are secrets."""
        prepared = self._prepare(confinement, surroundings(self._host, confinement.roots))
        own = (*_handing_over(confinement), *map(_exported, confinement.variables))
        return prepared._replace(limiting="; ".join((prepared.limiting, *own)))

    def _prepare(self, confinement: Confinement, around: Surroundings) -> Prepared:
        self._check(confinement)
        view = view_of(confinement, around)
        told = arguments(self.program, view, self._nothing(), confinement.limits)
        return Prepared(
            program=self.program.path,
            arguments=as_read((*told, "--chdir", confinement.cwd)),
            bash=find_bash(self._host.environ.get("PATH", ""), partial(_is_shown, around)),
            environment=around.with_ripgrep(environment_for(confinement, self._host, lambda path: shows(view, path))),
            filter=filter_or_refusal(confinement.trust, 2),
            limiting=limiting(confinement.limits),
        )

    def _check(self, confinement: Confinement) -> None:
        hidden = len(confinement.hidden_files) + len(confinement.hidden_folders) + len(confinement.sealed)
        if hidden > _MOST_HIDDEN:
            raise ToolError(
                "LIMIT_EXCEEDED",
                f"The workspace holds {hidden:,} credentials, sockets and protected files, and {_MOST_HIDDEN:,} can be"
                " kept from a command. Nothing was run. Ask the person to remove some, or to open a smaller folder.",
            )
        program = os.path.realpath(self.program.path)
        if self.program.path not in SYSTEM_PROGRAMS and any(within(program, root) for root in confinement.writable):
            text = (
                f"Bubblewrap at {program} lies in the workspace, where anybody could have written it. Nothing was run."
            )
            raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Install it on the system.")

    def _nothing(self) -> str:
        try:
            return nothing_in(self._host.state)
        except OSError as error:
            raise ToolError(
                "SANDBOX_UNAVAILABLE", f"The state folder cannot be used: {error}. Nothing was run."
            ) from None


def _handing_over(confinement: Confinement) -> Iterator[str]:
    if not confinement.proxy:
        return
    from handrail.sandbox.proxy.inside import handing_over  # noqa: PLC0415  few commands have one
    from handrail.sandbox.view.interpreter import interpreter  # noqa: PLC0415  as above

    if confinement.only_looks:
        raise ValueError("a command that only looks may open no socket, so no proxy either")
    yield handing_over(interpreter())


def _exported(variable: tuple[str, str]) -> str:
    """By the guard's script, which nobody else reads: in bubblewrap's own environment, one that steers the loader would
    be in force outside of the sandbox."""
    name, value = variable
    quoted = value.replace("'", "'\\''")
    return f"export {name}='{quoted}'"


def _is_shown(around: Surroundings, program: str) -> bool:
    """Whether every command sees it, whatever its roots are: then no agent can have written it."""
    return around.shows(program) and around.shows(os.path.realpath(program))
