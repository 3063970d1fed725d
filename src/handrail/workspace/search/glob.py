"""Globs as ripgrep understands them, matched in a time that grows with the path and not with the stars."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby

from handrail.protocol.error import ToolError
from handrail.workspace.errors import clip_path
from handrail.workspace.search.glob_tokens import GlobError
from handrail.workspace.search.glob_ways import FOLDERS, STAR, GlobTooLargeError, Piece, Pieces, parse_glob

Matches = Callable[[bytes], bool]
"""Whether a path is meant."""

_EVERY_BYTE = frozenset(range(256))
_OFTEN = 4


def build_matcher(glob: str) -> Matches:
    """Whether a path below the searched folder matches: by its name without a slash in the glob, else as a whole."""
    found = compile_glob(glob)
    return lambda path: found(path) is not None


def build_excluder(globs: tuple[str, ...]) -> Callable[[bytes, bool], bool]:
    """Whether a path (True: of a folder), or a folder on its way, is left out; a glob that ends in / means folders."""
    everything = [build_matcher(glob) for glob in globs if not glob.endswith("/")]
    folders = everything + [build_matcher(glob.rstrip("/")) for glob in globs if glob.endswith("/")]
    known: dict[bytes, bool] = {b"": False}

    def is_out(path: bytes, is_folder: bool) -> bool:
        outer = path.rpartition(b"/")[0]
        if outer not in known:
            known[outer] = is_out(outer, True)
        return known[outer] or any(matches(path) for matches in (folders if is_folder else everything))

    return is_out


def anchor_glob(glob: str) -> str:
    """The glob for whole paths that a glob stands for: without a slash it matches at any depth."""
    if glob.startswith("/"):
        glob = glob[1:]
    elif "/" not in glob and glob != "**":
        glob = f"**/{glob}"
    # Without more, a/** would match the folder a/ too.
    return f"{glob}/*" if glob.endswith("/**") else glob


def build_expression(ways: tuple[Pieces, ...]) -> bytes:
    """An expression that matches the same paths, to be tried at their beginning."""
    return b"(?:%b)" % b"|".join(map(_way, ways)) if ways else b"(?!)"


@lru_cache(maxsize=64)
def compile_glob(glob: str) -> Callable[[bytes], re.Match[bytes] | None]:
    """What a glob matches, ready to be asked; INVALID_ARGUMENT where it is broken or too much."""
    try:
        ways = parse_glob(anchor_glob(glob))
    except GlobError as error:
        raise ToolError("INVALID_ARGUMENT", f"The glob {clip_path(glob)!r} is broken: {error}.") from None
    except GlobTooLargeError:
        message = (
            f"The glob {clip_path(glob)!r} is too long or has too many alternatives; use several narrower searches."
        )
        raise ToolError("INVALID_ARGUMENT", message) from None
    return re.compile(build_expression(ways), re.DOTALL).match


def _way(pieces: Pieces) -> bytes:
    """Nothing is tried twice: a group is closed as soon as it matched, because its first match is also the best one.

    For bytes behind a star, the nearest place leaves most to what follows; and if they hold a slash or end the path,
    there is only one place. For names behind any number of folders it is the same, up to the next such wildcard.
    """
    *runs, last = _split(pieces, FOLDERS)
    if not runs:
        return _run(last, b"\\Z")
    first, *middle = [_run(run) for run in runs]
    closed = b"".join(b"(?>(?:[^/]*+/)*?%b)" % run for run in middle)
    return b"%b%b(?:[^/]*+/)*?%b" % (first, closed, _run(last, b"\\Z"))


def _run(pieces: Pieces, end: bytes = b"") -> bytes:
    """What stands between two wildcards for folders."""
    first, *others = [_row(run) for run in _split(pieces, STAR)]
    if not others:
        return first + end
    others[-1] += end
    return first + b"".join(b"(?>[^/]*?%b)" % other for other in others)


def _split(pieces: Pieces, wildcard: str) -> list[Pieces]:
    runs: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece == wildcard:
            runs.append([])
        else:
            runs[-1].append(piece)
    return [tuple(run) for run in runs]


def _row(pieces: Pieces) -> bytes:
    """Bytes one after the other; the same several times is written once."""
    runs = ((_one(piece), sum(1 for _ in same)) for piece, same in groupby(pieces))
    return b"".join(one * count if count < _OFTEN else b"%b{%d}" % (one, count) for one, count in runs)


@lru_cache(maxsize=512)
def _one(piece: Piece) -> bytes:
    """An expression for one byte, by what it is or by what it is not, whichever is shorter."""
    members = frozenset(byte for byte in piece if isinstance(byte, int))
    if len(members) == 1:
        return re.escape(bytes(members))
    others = _EVERY_BYTE - members
    positive = b"[%b]" % _ranges(members) if members else b"(?!)"
    return min(positive, b"[^%b]" % _ranges(others), key=len) if others else positive


def _ranges(members: frozenset[int]) -> bytes:
    starts = sorted(byte for byte in members if byte - 1 not in members)
    ends = sorted(byte for byte in members if byte + 1 not in members)
    return b"".join(
        b"\\x%02x" % low if low == high else b"\\x%02x-\\x%02x" % (low, high)
        for low, high in zip(starts, ends, strict=True)
    )
