"""The languages that handrail has a grammar for. A stand-in until the module of the code tools is merged."""

from handrail.protocol.errors import ToolError


class MissingGrammarError(ToolError):
    """The grammar of a language is not installed."""


def find_language(path: str) -> str | None:
    """The name of the language of a file, by its name. None if handrail has no grammar for it."""
    return "python" if path.endswith((".py", ".pyi")) else None
