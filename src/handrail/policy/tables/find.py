"""find: paths, then an expression. Only the words of the expression that look and print are known here."""

from handrail.policy.commands.reading import PathUse
from handrail.policy.shell.script import Word
from handrail.policy.tables.form import ProgramSpec

_LINKS = frozenset(("-H", "-L", "-P", "-O0", "-O1", "-O2", "-O3"))
_PLAIN = frozenset(
    (
        "(", ")", "!", ",", "-not", "-a", "-and", "-o", "-or", "-d", "-depth", "-daystart", "-follow", "-help",
        "--help", "-version", "--version", "-mount", "-xdev", "-noleaf", "-nowarn", "-warn",
        "-ignore_readdir_race", "-noignore_readdir_race", "-true", "-false", "-empty", "-executable", "-readable",
        "-writable", "-nouser", "-nogroup", "-print", "-print0", "-ls", "-prune", "-quit",
    )
)  # fmt: skip
_WITH_TEXT = frozenset(
    (
        "-maxdepth", "-mindepth", "-amin", "-atime", "-cmin", "-ctime", "-mmin", "-mtime", "-context", "-fstype",
        "-gid", "-group", "-ilname", "-iname", "-inum", "-ipath", "-iregex", "-iwholename", "-links", "-lname",
        "-name", "-path", "-perm", "-printf", "-regex", "-regextype", "-size", "-type", "-uid", "-used", "-user",
        "-wholename", "-xtype",
    )
)  # fmt: skip
_WITH_FILE = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"}) | {
    f"-newer{left}{right}" for left in "aBcm" for right in "aBcm"
}
_WITH_TIME = frozenset({f"-newer{left}t" for left in "aBcm"})
_VALUED = _WITH_TEXT | _WITH_FILE | _WITH_TIME


def parse_find(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    """The paths that find starts from and those it compares with, or the first word that is not known to only look."""
    rest = list(words)
    while rest and rest[0].text in _LINKS:
        del rest[0]
    found: list[PathUse] = []
    while rest and not (rest[0].text[:1] == "-" or rest[0].text in _PLAIN):
        word = rest.pop(0)
        found.append(PathUse(word.text, "read", bool(word.globs)))
    return _read_expression(rest, found)


def _read_expression(words: list[Word], found: list[PathUse]) -> tuple[PathUse, ...] | str:
    rest = iter(words)
    for word in rest:
        if word.text in _PLAIN:
            continue
        if word.text not in _VALUED:
            return f"find's {word.text} is not among the words that only look"
        value = next(rest, None)
        if value is None or value.globs:
            return (
                f"find's {word.text} lacks its value"
                if value is None
                else f"{value.text} is a pattern behind find's {word.text}"
            )
        if word.text in _WITH_FILE:
            found.append(PathUse(value.text, "read"))
    return tuple(found)


FIND = (
    ProgramSpec(
        name="find",
        custom_parser=parse_find,
        grantable=False,
        match=(
            "find", "find . -name '*.py'", "find src tests -type f -not -path '*/.git/*' -print0",
            "find -L . -maxdepth 2 -ls", "find . \\( -name a -o -name b \\) -prune -o -print",
            "find . ! -newer a.txt -mtime -1", "find src/* -size +1M", "find . -type f -printf '%p\\n'",
            "find . -name -exec", "find . -newermt 2024-01-01 -iname x",
        ),
        no_match=(
            "find . -exec rm {} +", "find . -execdir sh -c id", "find . -ok rm {} +", "find . -okdir rm {} +",
            "find . -delete", "find . -name x -delete", "find . -fprint x", "find . -fprint0 x",
            "find . -fprintf x %p", "find . -fls x", "find -files0-from list", "find . -name x -exec id ';'",
            "find . -D exec", "find . -name", "find . -name a*", "find . -newerXY a", "find . -print x",
        ),
    ),
)  # fmt: skip
