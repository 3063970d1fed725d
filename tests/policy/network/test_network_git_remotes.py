"""URLs of git remotes, read from a repository's configuration."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.git_config import parse_git_config
from handrail.policy.network.git_remotes import Remote, list_remote_urls

CONFIG = """
[core]
\tbare = false
[remote "origin"]
\turl = https://example.org/a.git ; as it is
\tfetch = +refs/heads/*:refs/remotes/origin/*
[remote "up.Stream"]
\turl = "https://up.example.org/a#1.git" # and a comment
\tpushurl = git@push.example.org:a.git
\tpushurl = https://push.example.org/a.git
[branch "topic"]
\tremote = up.Stream
\tpushRemote = origin
"""


def test_a_named_remote_has_its_urls_and_its_own_for_pushing() -> None:
    assert list_remote_urls(Remote(".", ("origin",)), CONFIG) == ("https://example.org/a.git",)
    assert list_remote_urls(Remote(".", ("origin",), push=True), CONFIG) == ("https://example.org/a.git",)
    assert list_remote_urls(Remote(".", ("up.Stream",)), CONFIG) == ("https://up.example.org/a#1.git",)
    pushed = list_remote_urls(Remote(".", ("up.Stream",), push=True), CONFIG)
    assert pushed == ("git@push.example.org:a.git", "https://push.example.org/a.git")
    assert list_remote_urls(Remote(".", ("../other",)), CONFIG) == ("../other",)


def test_where_none_is_named_it_is_the_branchs_the_only_one_or_origin() -> None:
    on_topic, detached = "ref: refs/heads/topic\n", "3f2a"
    assert list_remote_urls(Remote("."), CONFIG, on_topic) == ("https://up.example.org/a#1.git",)
    assert list_remote_urls(Remote(".", push=True), CONFIG, on_topic) == ("https://example.org/a.git",)
    assert list_remote_urls(Remote("."), CONFIG, detached) == ("https://example.org/a.git",)
    assert list_remote_urls(Remote("."), '[remote "only"] url = https://only.org/a') == ("https://only.org/a",)
    assert list_remote_urls(Remote("."), "") == ("origin",)
    by_default = f"{CONFIG}[remote]\npushDefault = up.Stream\n"
    assert list_remote_urls(Remote(".", push=True), by_default, detached)[-1] == "https://push.example.org/a.git"


def test_all_remotes_and_submodules_are_what_they_say() -> None:
    both = ("https://example.org/a.git", "https://up.example.org/a#1.git")
    assert list_remote_urls(Remote(".", every=True), CONFIG) == both
    modules = '[submodule "lib"]\n path = lib\n url = https://lib.example.org/a\n'
    told = list_remote_urls(Remote(".", modules=True), f'{CONFIG}[submodule "b"] url = https://b.org/b', "", modules)
    assert told == ("https://example.org/a.git", "https://b.org/b", "https://lib.example.org/a")


@given(st.text('[]"\\=#; \n\tremoteurlb.', max_size=60))
def test_no_configuration_is_too_strange_to_be_read(text: str) -> None:
    for setting in parse_git_config(text).settings:
        assert setting.section
        assert setting.key
    assert list_remote_urls(Remote(".", every=True, modules=True), text) is not None


def test_a_file_that_is_made_to_take_long_does_not() -> None:
    """A workspace brings its own; nothing else of the process moves while one is matched."""
    blanks = " " * 300_000
    for text in (f"[a{blanks}", f'[a "b"{blanks}', f"{blanks}[", f"[a]x{blanks}", f"[a]x={blanks}x", "\\" * 300_000):
        assert all(len(one.value) <= 1 for one in parse_git_config(text).settings)
    many = "".join(f'[remote "{n}"]url=https://h{n}.example.org/\n' for n in range(5_000))
    assert len(list_remote_urls(Remote(".", every=True), many)) == 5_000
