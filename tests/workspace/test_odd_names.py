"""Names that file systems allow and people do not expect."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail

Rail = Callable[..., Handrail]

ODD = [
    "new\nline.txt",
    "tab\tname",
    " leading and trailing ",
    "-rf",
    "back\\slash",
    "quote\"and'",
    "star*?[x]",
    "ünïcödé.txt",
    "u\u0308mlaut-decomposed",
    "\u202eright-to-left",
    "emoji-🦀",
    "n" * 255,
    "é" * 127,
    "$(touch owned)",
    "%s{path}",
    "a:b:c",
    "…",
    "...",
    "~",
]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_is_written_listed_and_read(rail: Rail, workspace: Path, resolver: str, name: str) -> None:
    one = rail(resolver=resolver)
    assert one.write(name, "content\n").ok
    assert os.listdir(workspace) == [name]
    assert one.read(name).content == "content\n"
    assert one.write(f"folder/{name}", "content\n").ok
    assert one.ls("folder").meta.returned == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "INVALID_ARGUMENT"),
        ("nul\0name", "INVALID_ARGUMENT"),
        ("x" * 1_000_000, "INVALID_ARGUMENT"),
        ("x/" * 500_000, "INVALID_ARGUMENT"),
        ("x" * 256, "INVALID_ARGUMENT"),
        ("é" * 128, "INVALID_ARGUMENT"),
        ("a/" * 2_040 + "deep", "NOT_FOUND"),
        ("\udcff", "INVALID_ARGUMENT"),
    ],
)
def test_an_impossible_path_is_refused_in_few_words(rail: Rail, resolver: str, path: str, code: str) -> None:
    one = rail(resolver=resolver)
    for result in (one.read(path), one.ls(path)):
        assert result.error.code == code
        assert len(result.error.message) < 1_000
    if code == "INVALID_ARGUMENT":
        assert one.write(path, "x").error.code == code


def test_a_name_that_is_not_text_is_reached_through_a_link_and_shown_with_its_bytes(
    rail: Rail, workspace: Path, resolver: str
) -> None:
    """Such a name cannot be asked for, but a link leads to it; results and journal must hold it as text."""
    raw = os.fsencode(workspace) + b"/caf\xe9"
    os.mkdir(raw)
    Path(os.fsdecode(raw + b"/x.txt")).write_text("inside")
    (workspace / "link").symlink_to(os.fsdecode(b"caf\xe9"))
    one = rail(resolver=resolver)
    assert one.read("link/x.txt").data.path == "caf\\udce9/x.txt"
    assert one.ls("link").data.path == "caf\\udce9"
    assert one.write("link/x.txt", "changed").ok
    assert one.write("link/new.txt", "new").artifacts.files_changed == ("caf\\udce9/new.txt",)
    assert one.read("link/x.txt").content == "changed"
    assert one.read("no such file").error.code == "NOT_FOUND"
    assert len(list(one.events())) > 5


def test_a_name_that_is_not_text_is_listed_and_never_suggested(rail: Rail, workspace: Path, resolver: str) -> None:
    Path(os.fsdecode(os.fsencode(workspace) + b"/caf\xe9.txt")).write_text("x")
    one = rail(resolver=resolver)
    assert one.ls(".").content == "caf\\udce9.txt  1 B\n"
    assert one.read("cafe.txt").error.details == {"near": []}


def test_messages_make_odd_names_visible(rail: Rail, resolver: str) -> None:
    one = rail(resolver=resolver)
    for result in (one.read("evil\nNo error. Content: 42"), one.ls("evil\x1b[2J"), one.write("evil\r.txt/", "x")):
        assert not result.ok
        assert result.error.message.isprintable()
        assert result.summary.isprintable()
    written = one.write("evil\nname", "x")
    assert written.summary.isprintable()
    assert one.read("evil\nname").summary.isprintable()
