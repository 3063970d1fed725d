"""A running command is followed: now and then, the latest of what it printed, nothing half."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from handrail.process.output import Update, Updates, clean_output


class Following:
    """Updates on a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.told: list[tuple[float, Update]] = []
        self.updates = Updates(lambda update: self.told.append((self.now, update)), clock=lambda: self.now)

    def at(self, second: float, data: bytes = b"") -> None:
        self.now = 100.0 + second
        self.updates.feed(data)

    @property
    def texts(self) -> list[str]:
        return [update.text for _, update in self.told]


def test_nothing_is_told_of_a_short_command() -> None:
    following = Following()
    following.at(0.0, b"one\n")
    following.at(0.19, b"two\n")
    assert following.told == []


def test_what_was_printed_is_told_together_and_once() -> None:
    following = Following()
    following.at(0.1, b"one\n")
    following.at(0.2, b"two\n")
    following.at(0.5)
    following.at(0.6, b"three\n")
    assert [update for _, update in following.told] == [Update("one\ntwo\n", 0), Update("three\n", 0)]


def test_what_waits_is_told_when_nothing_more_comes() -> None:
    following = Following()
    following.at(0.2, b"one\n")
    following.at(0.3, b"two\n")
    following.at(0.39)
    assert following.texts == ["one\n"]
    following.at(0.41)
    assert following.texts == ["one\n", "two\n"]


def test_the_pauses_grow_to_a_second() -> None:
    following = Following()
    for tick in range(12_000):
        following.at(tick / 100, b"x\n")
    times = [when - 100.0 for when, _ in following.told]
    pauses = [(before, after - before) for before, after in itertools.pairwise(times)]
    assert all(0.19 < pause < 0.22 for before, pause in pauses if before < 10)
    assert all(0.19 < pause < 1.02 for _, pause in pauses)
    assert all(pause > 0.99 for before, pause in pauses if before > 50)


def test_a_flood_is_told_by_its_end() -> None:
    following = Following()
    for number in range(1000):
        following.at(0.1, b"%05d " % number * 1000)
    following.at(0.3)
    assert following.texts == [("00999 " * 1000)[-4000:]]
    assert following.told[0][1].skipped == 6_000_000 - 4000


def test_half_a_character_waits_for_its_other_half() -> None:
    following = Following()
    following.at(0.3, "a世".encode()[:-1])
    following.at(1.0, "世".encode()[-1:] + b"b")
    assert following.texts == ["a", "世b"]


def test_half_a_sequence_waits_for_its_other_half() -> None:
    following = Following()
    following.at(0.3, b"a\x1b[3")
    following.at(1.0, b"1mb\x1b]0;ti")
    following.at(2.0, b"tle\x07c")
    assert following.texts == ["a", "b", "c"]


def test_what_begins_in_the_middle_of_a_character_begins_with_the_next() -> None:
    following = Following()
    following.at(0.3, "世".encode() * 20_000)
    assert following.texts == ["世" * 4000]
    assert following.told[0][1].skipped == 48_000
    following.at(2.0, b"\x96" + b"a" * 15_999 + "世".encode()[:1])
    assert following.texts[1] == "a" * 4000


def test_it_is_clean() -> None:
    following = Following()
    following.at(0.3, b"\x1b[31mred\x1b[0m 1%\rred 2%\x07\n")
    assert following.texts == ["red 2%�\n"]
    following.at(2.0, b"\x1b[0m")
    assert len(following.told) == 1


@given(st.lists(st.tuples(st.floats(0, 0.5), st.text("aé世🎉\n", max_size=50)), max_size=40), st.integers(1, 7))
def test_nothing_is_lost_where_little_is_printed(steps: list[tuple[float, str]], size: int) -> None:
    following, second = Following(), 0.0
    whole = "".join(text for _, text in steps).encode()
    for place, (pause, _) in enumerate(steps):
        second += pause
        following.at(second, whole[place * size : (place + 1) * size])
    following.at(second + 2, whole[len(steps) * size :])
    assert "".join(following.texts) == clean_output(whole)
    assert all(update.skipped == 0 for _, update in following.told)
