"""jq and yq: the filter is a program of its own; what in it reaches beyond its input is refused."""

import re
from collections.abc import Iterator

from handrail.policy.commands.options import list_path_uses, sort_words
from handrail.policy.commands.reading import PathUse
from handrail.policy.shell.script import Word
from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_JQ = ProgramSpec(
    name="jq",
    flags="acCehjMnrRsSV",
    long_flags="ascii-output compact-output color-output exit-status help join-output monochrome-output null-input "
    "raw-output raw-output0 raw-input slurp sort-keys stream stream-errors seq tab unbuffered version "
    "build-configuration args jsonargs",
    long_values="indent",
    first="text",
)
_PAIRS = {"--arg": False, "--argjson": False, "--slurpfile": True, "--rawfile": True, "--argfile": True}
"""The options of jq with two values, and whether the second one is a file."""

# Modules are named before anything else; behind a comment we do not look.
_MODULES = re.compile(r"\s*(?:#|module\b|import\b|include\b)")
_KEY = re.compile(r"(?<!\.)\.\w++(?!\s*\()")
_REACHES_OUT = re.compile(r"\$ENV\b|\b(?:env|envsubst|strenv|load\w*|system|eval|modulemeta)\b")


def find_filter_refusal(text: str) -> str | None:
    """Why a filter asks: it takes in more than its input. A key of that name (`.env`) is only a key."""
    if _MODULES.match(text):
        return "the filter begins with a comment or takes in a module"
    found = _REACHES_OUT.search(_KEY.sub(".", text))
    return f"the filter uses {found[0]}, which reaches beyond its input" if found else None


def _read_jq(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    rest = iter(words)
    plain, files = list[Word](), list[PathUse]()
    for word in rest:
        if word.text in _PAIRS:
            pair = _pair(word, rest)
            if isinstance(pair, str):
                return pair
            files += pair
        elif word.text == "--":
            return "jq's versions differ in what -- means"
        else:
            plain.append(word)
    return _read_rest(tuple(plain), files)


def _pair(word: Word, rest: Iterator[Word]) -> list[PathUse] | str:
    name, value = next(rest, None), next(rest, None)
    if name is None or value is None or name.globs or value.globs:
        return f"jq's option {word.text} lacks its name and value"
    return [PathUse(value.text, "read")] if _PAIRS[word.text] else []


def _read_rest(words: tuple[Word, ...], files: list[PathUse]) -> tuple[PathUse, ...] | str:
    parsed = sort_words(_JQ, words)
    if isinstance(parsed, str):
        return parsed
    if 0 in parsed.globs:
        return f"{parsed.operands[0]} is a pattern where jq has its filter"
    if fault := find_filter_refusal(parsed.operands[0] if parsed.operands else ""):
        return fault
    return (*files, *list_path_uses(_JQ, parsed))


def _refuse_yq(parsed: ParsedArgs) -> str | None:
    # What is a value to one of the two programs is an option to the other.
    if odd := next((value for _, value in parsed.options if value and value.startswith("-")), None):
        return f"yq may take {odd} for an option"
    # Of the two, the one in Python knows --indent only as the beginning of an option without a value.
    if odd := next(
        (value for name, value in parsed.options if name == "--indent" and not (value or "").isdigit()), None
    ):
        return f"yq may take {odd} for its filter"
    if 0 in parsed.globs:
        return f"{parsed.operands[0]} is a pattern where yq has its filter"
    return find_filter_refusal(parsed.operands[0] if parsed.operands else "")


TABLES = (
    ProgramSpec(
        name="jq",
        custom_parser=_read_jq,
        match=(
            "jq . a.json", "jq -r '.scripts | keys[]' package.json", "jq -nc --arg a b '{a: $a}'", "jq '.env' a.json",
            "jq --slurpfile a b.json '. + $a' c.json", "jq -n '[inputs]' a b", "jq --indent 4 .",
            "jq '.a[0]' --tab a", "jq -e '.dependencies.include' a.json", "jq --args -n '$ARGS' a b",
        ),
        no_match=(
            "jq -f prog.jq a.json", "jq --from-file prog.jq a", "jq -L lib . a", "jq -rL lib . a",
            "jq 'import \"a\" as a; .'", "jq 'include \"a\"; .'", "jq env", "jq -n '$ENV.HOME'", "jq -n 'env.HOME'",
            "jq '# x' a", "jq modulemeta a", "jq --unknown . a", "jq --arg a", "jq -- . a", "jq -rf prog.jq a",
        ),
    ),
    # Two programs bear this name. Only what both take, or one of them refuses, is here; and the one in Go takes its
    # first operand for a file when there is one.
    ProgramSpec(
        name="yq",
        also=("yq e", "yq eval", "yq ea", "yq eval-all"),
        flags="0acCehjMnNPrSvVyY",
        values="oIpw",
        long_flags="colors no-colors exit-status help no-doc null-input nul-output prettyPrint tojson unwrapScalar= "
        "verbose version yaml-output yml-output yaml-roundtrip yml-roundtrip indentless indentless-lists raw-output "
        "compact-output sort-keys",
        long_values="indent input-format output-format width",
        reject=_refuse_yq,
        match=(
            "yq .a a.yaml", "yq -r '.services | keys' c.yml", "yq e '.a.b' a.yaml", "yq -o json . a.yaml",
            "yq -y . a",
        ),
        no_match=(
            "yq -i .a=1 a.yaml", "yq --inplace .a=1 a", "yq --in-place . a", "yq -ri . a", "yq -s .a a.yaml",
            "yq -f x . a", "yq 'load(\"b\")' a", "yq '.a = load_str(\"b\")' a", "yq 'strenv(A)' a", "yq 'env(A)' a",
            "yq '..load(\"b\")' a", "yq 'eval(.a)' a", "yq 'system(\"id\")' a", "yq --from-file x a",
            "yq --split-exp .a a", "yq e -i . a", "yq -I -i . a", "yq --indent env a",
            "yq '.a.load(\"b\")' a", "yq '. | envsubst' a",
        ),
    ),
)  # fmt: skip
