"""The command line of a search by ripgrep."""

import re
from functools import lru_cache

from handrail.policy.secret_globs import list_secret_globs
from handrail.workspace.ignore import ALWAYS_IGNORED, TEMPORARY_PREFIX
from handrail.workspace.search.above import has_exceptions_above, has_odd_repository, has_odd_rules
from handrail.workspace.search.engine import Pattern, SearchScope

_COMMON = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-parent", "--no-mmap", "--color=never")
_PLAIN_GLOB = re.compile(r"[\w.*?/+@=~-]+", re.ASCII)
"""Globs that ripgrep and we are sure to read alike."""
_PLAIN_NAME = re.compile(r"[\w.*?+@=~{},-]+", re.ASCII)
_WANTED = "handrailwanted"
"""A file type of our own, for the names that a search is about."""


def build_files_command(program: str, where: SearchScope, *, ordered: bool) -> list[bytes]:
    """Names the files, each ended by a NUL."""
    return _encoded(program, *_COMMON, "--files", "--null", *_order(ordered), *_narrowed(where), "--", "./")


def build_hits_command(
    program: str, where: SearchScope, pattern: Pattern, *, ordered: bool, log: bool = False
) -> list[bytes]:
    """Searches the files. With a log it says which names it passed over."""
    buffered = ("--line-buffered",) if ordered else ()
    how = (*_COMMON, *_order(ordered), *buffered, *(("--debug",) if log else ()))
    globs = (*_narrowed(where), *_secrets())
    return _encoded(program, *how, *globs, *_expression(pattern), "--", "./")


def build_stream_command(program: str, pattern: Pattern) -> list[bytes]:
    """Searches what comes in."""
    return _encoded(program, *_COMMON, *_expression(pattern), "--", "-")


def has_short_log(where: SearchScope) -> bool:
    """Whether a log of what is passed over is short. Narrowed to a file type, ripgrep passes over nearly everything,
    and logging that takes many times as long as the search."""
    return _wanted_name(where.include) is None


def _expression(pattern: Pattern) -> tuple[str, ...]:
    case = "--case-sensitive" if pattern.case_sensitive else "--ignore-case"
    context = (f"--context={pattern.context}",) if pattern.context else ()
    return ("--json", "--crlf", case, *context, f"--max-count={pattern.per_file}", f"--regexp={pattern.text}")


def _order(ordered: bool) -> tuple[str, ...]:
    return ("--sort=path",) if ordered else ()


def _narrowed(where: SearchScope) -> list[str]:
    """What keeps ripgrep from walking where nothing is wanted. What this leaves in, the engine drops."""
    globs = ["--no-ignore"] if has_exceptions_above(where) or has_odd_rules(where) else []
    globs += ["--no-ignore-exclude"] if has_odd_repository(where) else []
    globs += [f"--glob=!{name}/" for name in ALWAYS_IGNORED]
    globs.append(f"--glob=!{TEMPORARY_PREFIX}*")
    globs += [f"--glob=!{glob}" for glob in where.exclude if _PLAIN_GLOB.fullmatch(glob)]
    globs += [f"--glob=!{pattern}" for pattern in where.ignore if _is_plain_ignore(pattern, where)]
    name = _wanted_name(where.include)
    return globs if name is None else [*globs, f"--type-add={_WANTED}:{name}", f"--type={_WANTED}"]


def _is_plain_ignore(pattern: str, where: SearchScope) -> bool:
    """A pattern about names holds in every folder alike; one with a way in it only where the way begins at the root."""
    if any(other.startswith("!") for other in where.ignore) or not _PLAIN_GLOB.fullmatch(pattern):
        return False
    return where.relative == "." or "/" not in pattern.rstrip("/")


def _wanted_name(include: str | None) -> str | None:
    """A glob for the last name of every path that the include glob matches; None where it narrows nothing."""
    if include is None:
        return None
    name = include.rpartition("/")[2]
    if ("/" in include and "{" in include) or not _PLAIN_NAME.fullmatch(name):
        return None
    return name if name.strip("*?") else None


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    return tuple(f"--iglob=!{glob}" for glob in list_secret_globs())


def _encoded(*arguments: str) -> list[bytes]:
    return [argument.encode("utf-8", "surrogateescape") for argument in arguments]
