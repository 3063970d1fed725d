"""The processes that a kept command has started."""

from handrail.kernel.procfs import ProcessStat, list_descendants


def list_live_descendants(program: int, namespace: int | None) -> list[ProcessStat]:
    """All that the command has started and that lives: not the launched program, nor what is first in its
    namespace, where it has one."""
    try:
        found = list_descendants(program)
    except OSError:  # there is no descriptor left to look with
        return []
    return [process for process in found if not process.dead and process.number != namespace]
