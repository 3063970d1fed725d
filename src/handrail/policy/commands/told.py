"""Programs of the project's own that may be told, in their options, to run something else: then they are wrappers."""

from typing import NamedTuple


class _Telling(NamedTuple):
    """The options that say what is run: letters, which may stand in a bundle, and names."""

    letters: str
    names: tuple[str, ...]
    assigned: bool = False
    """Whether an operand such as `SHELL=x` says it too."""


_MAKE = _Telling("fEI", ("file", "makefile", "eval"), assigned=True)
_COMPILER = _Telling("", ("wrapper", "fplugin", "specs"))
_TEX = _Telling("", ("shell-escape", "enable-write18", "shell-restricted"))
_TOLD = {
    "git rebase": _Telling("x", ("exec",)),
    "git archive": _Telling("", ("exec", "remote")),
    "git merge": _Telling("s", ("strategy",)),
    "go": _Telling("", ("exec", "toolexec", "vettool")),
    "cargo": _Telling("", ("config",)),
    "rustc": _Telling("C", ("codegen",)),
    "make": _MAKE,
    "gmake": _MAKE,
    "just": _Telling("cf", ("command", "shell", "shell-arg", "shell-command", "justfile", "set")),
    "cmake": _Telling("", ("E", "P")),
    "rake": _Telling("eEpfr", ("execute", "execute-print", "execute-continue", "rakefile", "require")),
    "prove": _Telling("e", ("exec",)),
    "pylint": _Telling("", ("init-hook", "load-plugins")),
    "latexmk": _Telling("er", ("latex", "pdflatex", "lualatex", "xelatex", *_TEX.names)),
    "protoc": _Telling("", ("plugin",)),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILER),
    **dict.fromkeys(("tex", "latex", "pdflatex", "xelatex"), _TEX),
}


def has_program_option(words: tuple[str, ...]) -> bool:
    """Whether an option of the command says what else is run. In doubt it does."""
    telling = _TOLD.get(" ".join(words[:2])) or _TOLD.get(words[0].rstrip("0123456789.-"))
    return telling is not None and any(_tells(word, telling) for word in words[1:])


def _tells(word: str, telling: _Telling) -> bool:
    if not word.startswith("-"):
        return telling.assigned and "=" in word
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("--"):  # where a long option may be shortened, its beginning is as good
        return bool(name) and any(one.startswith(name) for one in telling.names)
    return name in telling.names or bool(set(name) & set(telling.letters))
