"""Programs that show a text, whole or in part, or lay its lines out anew."""

import re

from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_GNU = "help version"
# With a slash in it, it is the name of a file that says what the signs are.
_CODE = re.compile(r"[^/]*(?://[A-Za-z]*)*\Z")


def _old_style(parsed: ParsedArgs) -> str | None:
    """`+5` is a number in the old style or the name of a file, which is the same to us; `+5f` would follow it."""
    odd = next((text for text in parsed.operands if text.startswith("+") and not text[1:].isdigit()), None)
    return odd and f"tail may take {odd} for options"


def _so_many_bytes(parsed: ParsedArgs) -> bool:
    return bool(parsed.options) and all(
        name in {"-c", "--bytes"} and (value or "-")[0].isdigit() for name, value in parsed.options
    )


def _refuse_charmap(parsed: ParsedArgs) -> str | None:
    odd = next((value for _, value in parsed.options if value and not _CODE.match(value)), None)
    return odd and f"iconv may read {odd} as a file"


TABLES = (
    ProgramSpec(
        name="cat",
        flags="AbeEnstTuv",
        long_flags=f"show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting {_GNU}",
        match=("cat README.md", "cat -n a.txt - b.txt", "cat -An -- -x", "cat --number src/*.py"),
        no_match=("cat --output=x a", "cat -o a", "cat --numb a"),
    ),
    ProgramSpec(
        name="head",
        flags="qvz",
        values="cn",
        numbers=True,
        long_flags=f"quiet silent verbose zero-terminated {_GNU}",
        long_values="bytes lines",
        always_ends=_so_many_bytes,
        match=(
            "head a.txt", "head -5 a.txt", "head -n 5 a.txt b.txt", "head -qn-3 a", "head --bytes=20 a",
            "head -c 1K a",
        ),
        no_match=("head -5x a.txt", "head --line=3 a", "head -n", "head -20c .env"),
    ),
    ProgramSpec(
        name="tail",
        flags="qvz",
        values="cn",
        numbers=True,
        long_flags=f"quiet silent verbose zero-terminated {_GNU}",
        long_values="bytes lines",
        reject=_old_style,
        match=("tail a.txt", "tail -20 a.txt", "tail -n +5 a.txt", "tail -c 10 a", "tail --lines=3 a", "tail +5 a"),
        # To follow a file does not end.
        no_match=(
            "tail -f a", "tail -F a", "tail -5f a", "tail +5f a", "tail -n 5 -f a", "tail -qf a", "tail --follow a",
            "tail --follow=name a", "tail --retry a", "tail --pid=1 a", "tail -s 1 a", "tail -20c .env", "tail -20cf a",
        ),
    ),
    ProgramSpec(
        name="wc",
        flags="cmlLw",
        long_flags=f"bytes chars lines max-line-length words {_GNU}",
        long_values="total",
        match=("wc", "wc -l a.txt", "wc -lw src/*.py", "wc --lines --total=only a"),
        no_match=("wc --files0-from=list", "wc --files0-from -", "wc -x a"),
    ),
    ProgramSpec(
        name="nl",
        flags="p",
        values="bdfhilnsvw",
        long_flags=f"no-renumber {_GNU}",
        long_values="body-numbering section-delimiter footer-numbering header-numbering line-increment "
        "join-blank-lines "
        "number-format number-separator starting-line-number number-width",
        match=("nl a.txt", "nl -ba -w 3 a.txt", "nl --body-numbering=a a"),
        no_match=("nl -z a", "nl --output=x a"),
    ),
    ProgramSpec(
        name="tac",
        flags="br",
        values="s",
        long_flags=f"before regex {_GNU}",
        long_values="separator",
        match=("tac a.log", "tac -s x a.log"),
        no_match=("tac -o x a", "tac --sep=x a"),
    ),
    ProgramSpec(
        name="rev",
        flags="h0V",
        long_flags=f"zero {_GNU}",
        match=("rev", "rev a.txt"),
        no_match=("rev -x a", "rev --output=x a"),
    ),
    ProgramSpec(
        name="fold",
        flags="bcs",
        values="w",
        numbers=True,
        long_flags=f"bytes characters spaces {_GNU}",
        long_values="width",
        match=("fold -w 80 -s a.txt", "fold -80 a.txt", "fold --width=72 a"),
        no_match=("fold -o x a", "fold --out a"),
    ),
    ProgramSpec(
        name="fmt",
        flags="cstu",
        values="pwg",
        numbers=True,
        long_flags=f"crown-margin split-only tagged-paragraph uniform-spacing {_GNU}",
        long_values="prefix width goal",
        match=("fmt -w 72 a.txt", "fmt -72 a.txt", "fmt -s a"),
        no_match=("fmt -i a", "fmt --in-place a"),
    ),
    ProgramSpec(
        name="expand",
        flags="i",
        values="t",
        numbers=True,
        long_flags=f"initial {_GNU}",
        long_values="tabs",
        match=("expand a.txt", "expand -t 4 a.txt", "expand -4 a"),
        no_match=("expand -o a", "expand --in-place a"),
    ),
    ProgramSpec(
        name="unexpand",
        flags="a",
        values="t",
        long_flags=f"all first-only {_GNU}",
        long_values="tabs",
        match=("unexpand -a a.txt", "unexpand --first-only -t4 a"),
        no_match=("unexpand -o a", "unexpand --in-place a"),
    ),
    ProgramSpec(
        name="iconv",
        flags="cls?V",
        values="ft",
        long_flags=f"list silent verbose usage {_GNU}",
        long_values="from-code to-code",
        reject=_refuse_charmap,
        match=("iconv -f latin1 -t utf-8 a.txt", "iconv --list", "iconv -f utf-8 -t ascii//TRANSLIT a"),
        no_match=("iconv -f latin1 -o b.txt a.txt", "iconv --output=b.txt a.txt", "iconv -f ../charmap a"),
    ),
)  # fmt: skip
