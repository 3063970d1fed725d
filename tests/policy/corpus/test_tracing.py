"""The watcher that fuzzing relies on: what attacks do does not escape it."""

from .ground import Ground, side_by_side
from .records import Attack, attacks
from .tracing import Seen, watch

_EFFECTS = ("executes", "writes", "deletes", "connects")


def test_what_attacks_do_is_seen(ground: Ground) -> None:
    chosen = [attack for effect in _EFFECTS for attack in _some(effect)]
    seen = side_by_side(lambda attack: _watched(ground, attack), chosen)
    missed = [attack.text for attack, one in zip(chosen, seen, strict=True) if not _is_seen(attack, one)]
    assert not missed


def test_reading_is_not_taken_for_more(ground: Ground) -> None:
    texts = [
        "ls -la",
        "cat README.md | sort | uniq -c",
        "git status; git diff",
        "tac words.txt | tac",
        "stat README.md",
    ]
    assert [one.other for one in watch(ground.box(), texts)] == [[]] * len(texts)


def _some(effect: str) -> list[Attack]:
    """Every eighth; what is traced cannot be traced by strace once more."""
    plain = [one for one in attacks("seen") if not one.terminal and not one.replaced and one.program != "strace"]
    return [attack for attack in plain if attack.effect == effect][::8]


def _watched(ground: Ground, attack: Attack) -> Seen:
    [seen] = watch(ground.box(), [attack.text])
    ground.settle()
    return seen


def _is_seen(attack: Attack, seen: Seen) -> bool:
    if attack.effect == "executes":
        return "canary" in seen.started
    sockets = [call for call in seen.other if call.startswith(("socket(", "connect("))]
    return bool(sockets) if attack.effect == "connects" else len(seen.other) > len(sockets)
