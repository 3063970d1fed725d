"""The pictures of a prompt."""

import asyncio
import os
from pathlib import Path

import pytest

from handrail.chat.pictures import attach_pictures, read_clipboard_picture
from handrail.protocol.results import MAX_IMAGE_BYTES

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)


def test_a_pasted_picture_is_attached_by_its_place_in_the_text(workspace: Path) -> None:
    prompt = attach_pictures("see [Pasted picture 1]", str(workspace), {"[Pasted picture 1]": PICTURE})
    assert prompt.text == "see [picture 1: from the clipboard]"
    assert len(prompt.pictures) == 1


def test_a_pasted_picture_that_is_too_large_is_a_note(workspace: Path) -> None:
    token = "[Pasted picture 1]"
    prompt = attach_pictures(f"see {token}", str(workspace), {token: PICTURE + bytes(MAX_IMAGE_BYTES)})
    assert (prompt.text, prompt.pictures) == (f"see {token}", ())
    assert prompt.notes[0].startswith("clipboard is not attached.")


def test_pasted_pictures_above_the_limit_are_notes(workspace: Path) -> None:
    pasted = {f"[Pasted picture {number}]": PICTURE for number in range(1, 23)}
    prompt = attach_pictures(" ".join(pasted), str(workspace), pasted)
    assert (len(prompt.pictures), len(prompt.notes)) == (20, 2)
    assert prompt.text.endswith("[picture 20: from the clipboard] [Pasted picture 21] [Pasted picture 22]")


def test_a_pipe_with_the_name_of_a_picture_is_no_picture(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe.png")
    prompt = attach_pictures("see pipe.png", str(workspace), {})
    assert (prompt.text, prompt.pictures) == ("see pipe.png", ())


@pytest.mark.parametrize("name", ["x\0.png", "a\ud800.png", "~a\0.png"])
def test_a_name_that_no_file_can_have_is_no_picture(workspace: Path, name: str) -> None:
    assert attach_pictures(f"see {name}", str(workspace), {}).pictures == ()


def put_program(folder: Path, script: str) -> tuple[str, ...]:
    """A folder with a program that reads the clipboard."""
    program = folder / "wl-paste"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return (str(folder),)


def test_the_clipboard_gives_a_picture_and_nothing_else(tmp_path: Path) -> None:
    folders = put_program(tmp_path, f"cat '{tmp_path}/clipboard'")
    (tmp_path / "clipboard").write_bytes(PICTURE)
    assert asyncio.run(read_clipboard_picture(folders)) == PICTURE
    (tmp_path / "clipboard").write_bytes(b"no picture")
    assert asyncio.run(read_clipboard_picture(folders)) is None


def test_an_endless_clipboard_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "start").write_bytes(PICTURE)
    found = asyncio.run(read_clipboard_picture(put_program(tmp_path, f"exec cat '{tmp_path}/start' /dev/zero")))
    assert found is not None
    assert len(found) == MAX_IMAGE_BYTES + 1
