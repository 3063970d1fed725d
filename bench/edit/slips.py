"""How models misquote: each slip takes lines, or texts, and gives them back as a model would have sent them."""

import random
import re

from bench.edit.hunk import Texts, UnfitError
from bench.edit.lines import common_indent, full, indent_of


def trailing(lines: list[str], chance: random.Random) -> list[str]:
    """White space at the end of a line or two, never only of the last one: there it would be found as it is."""
    slipped = list(lines)
    among = full(lines)[:-1] or full(lines)
    for number in chance.sample(among, min(len(among), chance.choice([1, 1, 2]))):
        slipped[number] += chance.choice([" ", "  ", "\t"])
    return slipped


def dedented(texts: Texts) -> Texts:
    """Both texts without the indentation that all their lines share."""
    common = common_indent(texts.old + texts.new)
    if not common:
        raise UnfitError
    cut = len(common)
    return Texts(*([line[cut:] if line.strip() else line for line in lines] for lines in texts))


def indented(lines: list[str], indent: str) -> list[str]:
    return [indent + line if line.strip() else line for line in lines]


def shifted(texts: Texts, chance: random.Random) -> Texts:
    """Both texts at another indentation: mostly at none."""
    if common_indent(texts.old + texts.new) and chance.random() < 0.75:
        return dedented(texts)
    tabs = any("\t" in indent_of(line) for line in texts.old + texts.new)
    more = "\t" if tabs else chance.choice(["  ", "    "])
    return Texts(indented(texts.old, more), indented(texts.new, more))


def retabbed(texts: Texts, file: str) -> Texts:
    """Tabs where the file has spaces, spaces where it has tabs. Texts that have both would say something else then."""
    if len(set("".join(indent_of(line) for line in texts.old + texts.new))) > 1:
        raise UnfitError
    width = _width(file)
    slipped = Texts(*([_retabbed(line, width) for line in lines] for lines in texts))
    if slipped.old == texts.old:
        raise UnfitError
    return slipped


def step_of(file: str) -> str:
    """One step of a file's indentation."""
    indents = [indent_of(line) for line in file.split("\n")]
    tabs = sum(indent.startswith("\t") for indent in indents)
    return "\t" if 2 * tabs > sum(map(bool, indents)) else " " * _width(file)


def _width(file: str) -> int:
    """Spaces of one step of indentation."""
    indents = [len(indent_of(line)) for line in file.split("\n") if line.startswith(" ") and line.strip()]
    return 2 if indents and sum(indent % 4 == 2 for indent in indents) > len(indents) / 4 else 4


def _retabbed(line: str, width: int) -> str:
    indent = indent_of(line)
    if "\t" in indent:
        return indent.replace("\t", "    ") + line[len(indent) :]
    steps, rest = divmod(len(indent), width)
    return "\t" * steps + " " * rest + line[len(indent) :]


def numbered(texts: Texts, line: int, chance: random.Random) -> Texts:
    """Numbers before the lines, as a listing shows them; in half of the cases before the new ones too."""
    layout = chance.choice(["{:6d}\t{}", "{:>6}→{}", "{}: {}", "{:05d}| {}"])
    old, new = ([layout.format(line + 1 + number, text) for number, text in enumerate(lines)] for lines in texts)
    return Texts(old, new if chance.random() < 0.5 else texts.new)


def curly(text: str) -> str:
    """Typographic quotes, opening and closing in turn."""
    pairs = {'"': "“”", "'": "‘’"}
    count = {'"': 0, "'": 0}

    def turn(found: re.Match[str]) -> str:
        count[found[0]] += 1
        return pairs[found[0]][1 - count[found[0]] % 2]

    return re.sub("[\"']", turn, text)


def spaced(line: str, chance: random.Random) -> str | None:
    """The line with more, or less, white space somewhere inside it."""
    runs = list(re.finditer(r"(?<=\S)[ \t]+(?=\S)", line))
    if not runs:
        return None
    run = chance.choice(runs)
    space = " " if len(run[0]) > 1 else chance.choice(["  ", "   ", "\t"])
    return line[: run.start()] + space + line[run.end() :]


def paired(text: str) -> str:
    """Lines that end the way of Windows."""
    return text.replace("\n", "\r\n")
