"""Commands that run the code or the command they are given: an allow rule cannot speak of them as a whole."""

from handrail.policy.rules.prefix import Prefix, is_about, prefix
from handrail.policy.tables.groups import GROUPS

_ALWAYS = frozenset(
    name for group in GROUPS if group.rule in {"exec.interpreter", "exec.wrapper"} for name in group.programs
)
_STARTERS = tuple(
    prefix(tuple(starter.split()))
    for starter in (
        "npx", "pnpx", "bunx", "uvx", "uv run", "uv tool run", "uv x", "pipx run", "pipenv run", "poetry run",
        "pdm run", "hatch run", "rye run", "pixi run", "conda run", "mamba run", "npm exec", "npm x", "pnpm exec",
        "pnpm dlx", "yarn exec", "yarn dlx", "yarn run", "bun x", "bun run", "bundle exec", "mise exec", "mise x",
        "asdf exec", "pyenv exec", "rbenv exec", "docker run", "docker exec", "podman run", "podman exec",
        "kubectl exec", "ssh", "go run", "cargo run", "dotnet run", "git bisect run", "git submodule foreach",
        "corepack",
    )
)  # fmt: skip
"""They start what follows them: a rule may name that, but must name it."""
_VERSION = "0123456789.-"


def runs_code(words: tuple[str, ...]) -> bool:
    """Whether commands that begin with these words run whatever comes next, by any path and in any version."""
    program = words[0].rpartition("/")[2]
    name = program.casefold()
    if name in _ALWAYS or name.rstrip(_VERSION) in _ALWAYS:
        return True
    for starter in _STARTERS:
        size = len(starter.words)
        if starter.words[0] == program and is_about(starter, words):
            started = words[size:] if words[1:size] == starter.words[1:] else ()
            return not started or started[0].startswith("-") or runs_code(started)
    return False


def starters_behind(wanted: Prefix) -> tuple[Prefix, ...]:
    """What starts other programs and begins as a pattern does: `uv run`, for a rule that allows `uv`."""
    program, names = wanted.words[0].rpartition("/")[2], wanted.names
    return tuple(
        starter
        for starter in _STARTERS
        if starter.words[0] == program and starter.names[: len(names)] == names and len(starter.names) > len(names)
    )
