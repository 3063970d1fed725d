"""Tiers 1 and 0: a command under a supervisor, where there are no namespaces to put it in."""

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack

from handrail.kernel.files import move_above_standard, open_pipe_above_standard
from handrail.protocol.errors import ToolError
from handrail.sandbox.bash import find_bash
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.launch import Launch
from handrail.sandbox.supervision.fencing import build_fence
from handrail.sandbox.supervisor.plan import LandlockFence, SupervisorPlan
from handrail.sandbox.text import check_text
from handrail.sandbox.variables.environment import build_environment
from handrail.sandbox.view.mounts import is_shown
from handrail.sandbox.view.view import build_base_view, build_view

_PROGRAM = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "supervisor", "main.py"))


def launch_supervised(profile: SandboxProfile, host: SandboxHost, text: str, tier: int) -> Launch:
    """The command under a supervisor: fenced in by Landlock and seccomp at tier 1, by nothing at tier 0."""
    check_text(text)
    with ExitStack() as made:
        fence = _fence(profile, host, made) if tier else None
        environment = _environment(profile, host, fence)
        bash = find_bash(environment["PATH"], os.path.exists)  # none there that an agent could have written
        status, told = _pipe(made)
        watched, lifeline = _pipe(made)
        plan = SupervisorPlan(
            arguments=[os.fsencode(one) for one in (bash, "--noprofile", "--norc", "-c", text)],
            environment={os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
            | {os.fsencode(name): os.fsencode(value) for name, value in profile.variables},
            cwd=os.fsencode(profile.cwd),
            file_size=profile.limits.file_size,
            threads=profile.limits.threads,
            status=told,
            lifeline=watched,
            fence=fence,
        )
        launch = _launch(plan, host, status, lifeline)
        made.pop_all()  # they are the launch's from here on
        return launch


def _launch(plan: SupervisorPlan, host: SandboxHost, status: int, lifeline: int) -> Launch:
    if not sys.executable:
        raise ToolError("UNAVAILABLE", "Python cannot tell its own path (sys.executable), and commands are run by it.")
    written = move_above_standard(plan.write())
    return Launch(
        tier=1 if plan.fence else 0,
        argv=(sys.executable, "-I", "-S", _PROGRAM, str(written)),
        environment=_of_the_supervisor(host.environ),
        inherited=(written, plan.status, plan.lifeline, *([plan.fence.ruleset] if plan.fence else [])),
        status=status,
        lifeline=lifeline,
        own_processes=False,
    )


def _fence(profile: SandboxProfile, host: SandboxHost, made: ExitStack) -> LandlockFence:
    fence = build_fence(profile, host.home, build_base_view(host, profile.roots))
    made.callback(os.close, fence.ruleset)
    return fence


def _environment(profile: SandboxProfile, host: SandboxHost, fence: LandlockFence | None) -> dict[str, str]:
    if not fence:
        return build_environment(profile, host, os.path.exists)
    around = build_base_view(host, profile.roots)
    view = build_view(profile, around)
    private = os.fsdecode(fence.private)
    chosen = around.with_ripgrep(build_environment(profile, host, lambda path: is_shown(view, path)))
    return {**chosen, "HOME": f"{private}/home", "TMPDIR": f"{private}/tmp"}  # noqa: S108  not the machine's


def _pipe(made: ExitStack) -> tuple[int, int]:
    ends = open_pipe_above_standard()
    for end in ends:
        made.callback(os.close, end)
    return ends


def _of_the_supervisor(environ: Mapping[str, str]) -> dict[str, str]:
    """Where the interpreter itself needs it to start; the command's own variables are in the plan."""
    return {name: environ[name] for name in ("LD_LIBRARY_PATH",) if name in environ}
