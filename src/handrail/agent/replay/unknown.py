"""The files of a replay that are not as they were then: what a call makes of them cannot be compared."""

from collections.abc import Iterable

from handrail.agent.replay.recorded import RecordedCall

_MAX_NAMED_PATHS = 3
_READS_ANYTHING = "exec"


class UnknownFiles:
    """They become more: what a call that is left out would have changed is not as it was then either."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)

    def add(self, paths: Iterable[str]) -> None:
        """Files from here on."""
        self._paths.update(paths)

    def concerning(self, one: RecordedCall) -> tuple[str, ...]:
        """Those that a call is about, the first of many; a command may have read any."""
        result = one.result
        named = {fact.real for fact in one.facts.paths if fact.real is not None}
        named |= set(result.artifacts.files_changed) if result is not None else set()
        found = [path for path in sorted(self._paths) if one.call.name == _READS_ANYTHING or _is_in(path, named)]
        return tuple(found[:_MAX_NAMED_PATHS])


def _is_in(path: str, named: set[str]) -> bool:
    """Whether it is one of them, or in a folder that is."""
    return any(one in {path, "."} or path.startswith(f"{one}/") for one in named)
