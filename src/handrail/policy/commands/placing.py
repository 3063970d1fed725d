"""Where programs put things whose operands do not say it alone: into a folder, by keyword, on another machine."""

import re
from collections.abc import Iterator

from handrail.policy.commands.reading import PathUse
from handrail.policy.tables.form import ParsedArgs
from handrail.protocol.decision import Access

_INTO = frozenset(["-t", "--target-directory"])
_BLOCK_WORDS = frozenset(
    [
        "if",
        "of",
        "bs",
        "ibs",
        "obs",
        "cbs",
        "count",
        "skip",
        "seek",
        "iseek",
        "oseek",
        "conv",
        "iflag",
        "oflag",
        "status",
    ]
)
_PATTERN = re.compile(r"[*?[]")
_REMOTE = re.compile(r"[^/]*:")


def list_copy_destinations(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """What a copy is called where the destination is a folder: `cp a/handrail.toml .` writes ./handrail.toml. Whether
    it is one only the disk knows."""
    return tuple(_inside(parsed))


def _inside(parsed: ParsedArgs) -> Iterator[PathUse]:
    folders = [value for name, value in parsed.options if name in _INTO and value]
    sources = parsed.operands if folders else parsed.operands[:-1]
    for folder in folders or parsed.operands[-1:]:
        for place, source in enumerate(sources):
            name = source.rstrip("/").rpartition("/")[2]
            if place not in parsed.globs and name not in {"", ".", ".."}:
                yield PathUse(f"{folder.rstrip('/')}/{name}", "write", is_certainly_path=False)


def list_install_folders(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """`install -d` makes each of its operands."""
    if not _has(parsed, "-d", "--directory"):
        return list_copy_destinations(parsed)
    return tuple(PathUse(text, "write", place in parsed.globs) for place, text in enumerate(parsed.operands))


def refuse_distant_link(parsed: ParsedArgs) -> str | None:
    """A symbolic link is followed from the folder that it stands in: of `..` the words do not say where it leads."""
    if not _has(parsed, "-s", "--symbolic") or _has(parsed, "-r", "--relative"):
        return None
    targets = parsed.operands if _has(parsed, *_INTO) else (parsed.operands[:-1] or parsed.operands)
    distant = [target for target in targets if ".." in target.split("/") and not target.startswith("/")]
    return f"where {distant[0]} leads depends on where the link stands" if distant else None


def refuse_remote(parsed: ParsedArgs) -> str | None:
    """rsync reaches another machine when a colon stands before the first slash of a word, also in a file's name."""
    remote = [operand for operand in parsed.operands if _REMOTE.match(operand)]
    remote += [text for text in _patterns(parsed) if _PATTERN.search(text.partition("/")[0])]
    return f"{remote[0]} may be on another machine" if remote else None


def list_rsync_deletions(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """What rsync deletes besides what it writes."""
    deleted: list[str] = []
    if any(name.startswith("--delete") for name, _ in parsed.options):
        deleted += parsed.operands[-1:]
    if _has(parsed, "--remove-source-files"):
        deleted += parsed.operands[:-1]
    return tuple(PathUse(path, "delete", path in _patterns(parsed)) for path in deleted)


def refuse_blocks(parsed: ParsedArgs) -> str | None:
    """dd's words all have the form `bs=1M`; one that has not may be anything."""
    odd = [word for word in parsed.operands if "=" not in word or word.partition("=")[0] not in _BLOCK_WORDS]
    odd += _patterns(parsed)
    return f"dd's {odd[0]} is not among those that are known" if odd else None


def list_dd_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """The files that dd's `if=` and `of=` name."""
    named = [word.partition("=") for word in parsed.operands]
    accesses: dict[str, Access] = {"if": "read", "of": "write"}
    return tuple(PathUse(path, accesses[name]) for name, _, path in named if name in accesses)


def _has(parsed: ParsedArgs, *names: str) -> bool:
    return any(name in names for name, _ in parsed.options)


def _patterns(parsed: ParsedArgs) -> list[str]:
    return [parsed.operands[place] for place in parsed.globs]
