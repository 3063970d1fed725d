"""What tools draw on a terminal is for the model what a person sees when it is over."""

import pytest

from handrail.process.output import Cleaner, clean_output

DRAWN = {
    "git": (
        b"remote: Counting objects:  50% (1/2)\x1b[K\rremote: Counting objects: 100% (2/2), done.\x1b[K\n"
        b"Receiving objects:  99% (299/302)\rReceiving objects: 100% (302/302), done.\n",
        "remote: Counting objects: 100% (2/2), done.\nReceiving objects: 100% (302/302), done.\n",
    ),
    "pip": (
        b"\x1b[?25l   \x1b[90m--\x1b[0m 0.1/2.0 MB\r\x1b[2K   \x1b[32m----\x1b[0m 2.0/2.0 MB\n\x1b[?25h",
        "   ---- 2.0/2.0 MB\n",
    ),
    "npm": ("\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 3 packages\n".encode(), "added 3 packages\n"),
    "yarn": (b"\x1b[2K\x1b[Gstep 1\x1b[2K\x1b[Gstep 2\n", "step 2\n"),
    "cargo": (
        b"    Building [=>   ] 1/9: a\r\x1b[K   Compiling b v0\n    Building [==> ] 2/9\r\x1b[K    Finished\n",
        "   Compiling b v0\n    Finished\n",
    ),
    "tqdm": ("\r  0%|    | 0/3\r 33%|█▎  | 1/3\r100%|████| 3/3\n".encode(), "100%|████| 3/3\n"),
    "count": (b"10%\b\b\b20%\b\b\b30%\n", "30%\n"),
    "link": (b"\x1b]0;title\x07see \x1b]8;;http://a\x1b\\this\x1b]8;;\x1b\\\n", "see this\n"),
    "wide": ("日本\r日́é\n".encode(), "日́é\n"),
    "binary": (b"a\0b\xff\n", "a�b�\n"),
}


@pytest.mark.parametrize(("drawn", "seen"), DRAWN.values(), ids=DRAWN)
def test_what_was_drawn_is_told_as_it_looked_in_the_end(drawn: bytes, seen: str) -> None:
    assert clean_output(drawn) == seen


@pytest.mark.parametrize(("drawn", "seen"), DRAWN.values(), ids=DRAWN)
def test_it_does_not_matter_where_it_is_cut(drawn: bytes, seen: str) -> None:
    for place in range(len(drawn)):
        cleaner = Cleaner()
        assert cleaner.feed(drawn[:place]) + cleaner.feed(drawn[place:]) + cleaner.end() == seen
    cleaner = Cleaner()
    assert "".join(cleaner.feed(bytes([byte])) for byte in drawn) + cleaner.end() == seen
