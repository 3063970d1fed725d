"""Writes a script for bash so that nothing is left to interpret: bash runs this, never the text that was read."""

from handrail.policy.shell.script import Redirection, Script, SimpleCommand, Word


def to_bash(script: Script) -> str:
    """Every word in single quotes but for its globs, every operator from the fixed list."""
    text = _command(script.commands[0])
    for join, command in zip(script.joins, script.commands[1:], strict=True):
        text += f" {join} {_command(command)}"
    return text


def _command(command: SimpleCommand) -> str:
    words = [_word(word) for word in command.words]
    return " ".join([*words, *(_redirection(one) for one in command.redirections)])


def _redirection(redirection: Redirection) -> str:
    target = redirection.target
    return redirection.operator if target is None else f"{redirection.operator}{_word(target)}"


def _word(word: Word) -> str:
    text, globs = word.text, word.globs
    if not globs:
        return _quoted(text)
    parts, done, number = list[str](), 0, 0
    while number < len(globs):
        start = globs[number]
        # What stands between brackets stays as it is: in quotes, a-z would be three signs.
        number += 2 if text[start] == "[" else 1
        end = globs[number - 1] + 1
        parts += (_quoted(text[done:start]) if start > done else "", text[start:end])
        done = end
    return "".join(parts) + (_quoted(text[done:]) if text[done:] else "")


def _quoted(text: str) -> str:
    escaped = text.replace("'", r"'\''")
    return f"'{escaped}'"
