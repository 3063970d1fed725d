"""What may follow the words of an allow rule."""

import pytest

from handrail.policy.rules.command_match import is_inside_by_spelling, is_plain

OPTIONS = [
    "-", "--", "-x", "-M", "-Z", "-A", "-5", "-0", "-9", "-_", "-x-y", "--name", "--NAME", "--na_me", "--na-me", "--n9",
    "--a=", "--a=b", "--M=b", "--A=b", "--5=b", "--0=b", "--9=b", "--aM5=b", "--aA0=b", "--a9=b", "--a_b=c", "--a-b=c",
    "--a=b:c", "--a=b=c", "--a=b+c", "--a=b@c", "--a=50%", "--a=b,c", "--a=b-c", "--a=_x", "--a=B.c/d", "--a=\u00e9",
]  # fmt: skip
NO_OPTIONS = [
    "-a.b", "-a/b", "-a=b", "-a b", "-a\n", "--a.b", "--a+b", "--a b", "--a/b", "---a=b", "--=b", "--_a=b", "--a;b=c",
    "--a:b=c", "--a=b c", "--a=$b", "--a=b;c", "--a=b*", "--a=~b", "--a=b\n", "--a='b'", "--a=(b)",
]  # fmt: skip


@pytest.mark.parametrize("word", OPTIONS)
def test_a_plain_option_adds_nothing(word: str) -> None:
    assert is_plain(word, is_inside_by_spelling)


@pytest.mark.parametrize("word", NO_OPTIONS)
def test_any_other_option_has_to_be_named(word: str) -> None:
    assert not is_plain(word, lambda _: True)


@pytest.mark.parametrize(
    "word", ["a", "a/b", "a b", "a*", "a~", "a=b", "a,b:c@d", "a==b", "=", "\u00e9", "a.b", "#", "!"]
)
def test_an_operand_inside_is_plain(word: str) -> None:
    assert is_plain(word, is_inside_by_spelling)


@pytest.mark.parametrize("sign", [*"$`;|&<>'\"\\\x00\x01\n\t\x1f\x7f"])
def test_a_sign_that_may_be_handed_on_to_a_shell_is_not_plain(sign: str) -> None:
    for word in (f"a{sign}b", sign, f"{sign}a"):
        assert not is_plain(word, lambda _: True)


@pytest.mark.parametrize("word", ["~", "~a", "a=~b", "a:~", "a,~/b", "a@~"])
def test_a_home_folder_is_outside_whatever_anybody_says(word: str) -> None:
    assert not is_plain(word, lambda _: True)


def test_nothing_is_not_plain() -> None:
    assert not is_plain("", lambda _: True)


@pytest.mark.parametrize("word", ["a=b", "--x=a=b", "a:b", "--x=a:b", "a,b", "--x=a,b", "a@b", "--x=a@b", "a=,b"])
@pytest.mark.parametrize("outside", ["whole", "a", "b"])
def test_each_piece_of_a_word_must_be_inside_and_so_must_the_whole(word: str, outside: str) -> None:
    not_inside = word.removeprefix("--x=") if outside == "whole" else outside
    assert is_plain(word, lambda _: True)
    assert not is_plain(word, lambda piece: piece != not_inside)


def test_the_value_of_an_option_is_a_path_like_any_other() -> None:
    """It may be a link that leads elsewhere, with no slash in its name."""
    assert not is_plain("--basetemp=link", lambda piece: piece != "link")


@pytest.mark.parametrize(
    ("word", "inside"),
    [("a", True), ("a/../b", True), ("a~", True), ("..a", True), ("/a", False), ("~a", False), ("..", False),
     ("../a", False), ("a/../../b", False), ("a/../..", False)],
)  # fmt: skip
def test_what_is_inside_by_its_spelling(word: str, inside: bool) -> None:
    assert is_inside_by_spelling(word) is inside
