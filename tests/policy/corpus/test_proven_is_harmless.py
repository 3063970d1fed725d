"""Fuzzing for effects: whatever comes out as proven is run, and nothing may come of it."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Unparsed
from handrail.policy.wrappers import list_inner_commands
from handrail.workspace.workspace import Workspace

from .generating import gather, generators
from .ground import Ground, side_by_side
from .proving import as_run, is_proven
from .tracing import Seen, watch

_WEIGHTS = {"tables": 5, "crossed": 2, "mutated": 2, "worn": 1, "soup": 1}
"""How often each generator is asked."""
_STARTS_ITSELF = {
    "egrep": {"grep"},
    "fgrep": {"grep"},
    "yq": {"jq"},
    "git": {"git"},
    "zcat": {"gzip"},
    "npm": {"env", "node"},
}
"""Programs that are another one with options; and git, whose sub-commands are programs."""
_BATCH = 40


def test_nothing_that_is_proven_has_an_effect(
    ground: Ground, place: Workspace, count: Callable[[int], int], deep: bool
) -> None:
    makers = generators(gather(ground.box()))
    report, proven = Counter[str](), dict[str, None]()
    seed = random.randrange(1 << 32) if deep else 1
    source = random.Random(seed)
    while len(proven) < count(4_000):
        [name] = source.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        text = makers[name](source)
        report[f"{name} made"] += 1
        if "\0" not in text and is_proven(place, text):
            report[f"{name} proven"] += 1
            proven[text] = None
    batches = list(_batches(list(proven)))
    faults = [fault for found in side_by_side(lambda batch: _faults(ground, batch), batches) for fault in found]
    made = sum(report[f"{name} made"] for name in _WEIGHTS)
    print(f"seed {seed}: {made} strings made, {len(proven)} different ones proven and run: {dict(report)}")
    assert not faults, "\n".join(faults)


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _BATCH):
        yield texts[start : start + _BATCH]


def _faults(ground: Ground, texts: Sequence[str]) -> list[str]:
    """These texts, run; everything that may not be."""
    runs = [(text, form) for text in texts for form in _forms(text)]
    seen = watch(ground.box(), [form for _, form in runs])
    changed = ground.settle()
    found = [fault for (text, _), one in zip(runs, seen, strict=True) if (fault := _fault(text, one))]
    return [*found, f"the workspace changed: {changed} by one of {texts}"] if changed else found


def _forms(text: str) -> list[str]:
    """What bash is to be given, and the text as it is, unless it is safe only as it is written anew."""
    script = lex(text)
    assert not isinstance(script, Unparsed)
    has_pattern = any(word.globs for command in script.commands for word in command.words)
    return (
        [as_run(text)]
        if has_pattern or any(command.argv[0] == "npm" for command in script.commands)
        else [as_run(text), text]
    )


def _fault(text: str, seen: Seen) -> str | None:
    script = lex(text)
    assert not isinstance(script, Unparsed)
    words = [one for command in script.commands for one in (command.argv, *list_inner_commands(command.argv))]
    named = {argv[0].rsplit("/", 1)[-1] for argv in words}
    named |= {name for program in named for name in _STARTS_ITSELF.get(program, ())}
    # timeout and the shell itself come first
    foreign = [name for name in seen.started[2:] if name not in named]
    return f"{text!r}: started {foreign}, {seen.other}" if foreign or seen.other else None
