"""Steps as ways between states: whether a path is where a step begins, and in which order steps can be taken."""

from collections.abc import Iterable

from handrail.protocol.changes import State
from handrail.store.change_log import Step


def is_before_state(now: State | None, step: Step) -> bool:
    """Whether a path is what a step starts from. Permission bits count only where the step changes them."""
    then = step.before
    if not has_same_content(now, then) or now is None or then is None:
        return has_same_content(now, then)
    changes_mode = step.after is not None and step.after.mode != then.mode and step.after.kind == then.kind
    return not changes_mode or then.mode is None or now.mode == then.mode


def has_same_content(one: State | None, other: State | None) -> bool:
    """Whether two states are the same thing with the same content, whatever its permissions."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.hash) == (other.kind, other.hash)


def is_mode_change(step: Step) -> bool:
    """Whether a step leaves what is there as it is, but for its mode."""
    return step.before is not None and has_same_content(step.before, step.after)


def invert_step(step: Step) -> Step:
    """The same way in the other direction."""
    return Step(step.path, step.after, step.before)


def order_steps(steps: Iterable[Step]) -> list[Step]:
    """Steps in an order in which they can be taken: away with what goes, deepest first; then what comes, top first.

    A path that becomes another kind of thing goes first and comes afterwards.
    """
    going: list[Step] = []
    coming: list[Step] = []
    for step in steps:
        if step.before is not None and (step.after is None or step.after.kind != step.before.kind):
            going.append(Step(step.path, step.before, None))
            if step.after is not None:
                coming.append(Step(step.path, None, step.after))
        else:
            coming.append(step)
    return sorted(going, key=_depth, reverse=True) + sorted(coming, key=_depth)


def _depth(step: Step) -> tuple[bytes, ...]:
    return tuple(step.path.split(b"/"))
