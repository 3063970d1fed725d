"""Programs that read structured or binary data: jq, yq, od, objdump, archive listings."""

import re
from collections.abc import Iterator

from handrail.policy.programs.options import list_path_uses, parse_args
from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec
from handrail.policy.shell.syntax import Word

_JQ = ProgramSpec(
    name="jq",
    flags="acCehjMnrRsSV",
    long_flags="""ascii-output compact-output color-output exit-status help join-output monochrome-output null-input
        raw-output raw-output0 raw-input slurp sort-keys stream stream-errors seq tab unbuffered version
        build-configuration args jsonargs""",
    long_values="indent",
    first="text",
)
_JQ_PAIRS = {"--arg": False, "--argjson": False, "--slurpfile": True, "--rawfile": True, "--argfile": True}
"""Options with two values, and whether the second value is a file."""
# Modules come first. Filters that begin with a comment are refused, because modules may follow it.
_FILTER_MODULES = re.compile(r"\s*(?:#|module\b|import\b|include\b)")
_FILTER_KEY = re.compile(r"(?<!\.)\.\w++(?!\s*\()")
_FILTER_REACH = re.compile(r"\$ENV\b|\b(?:env|envsubst|strenv|load\w*|system|eval|modulemeta)\b")


def _refuse_filter(text: str) -> str | None:
    """Why a filter needs approval: it reads more than its input. A key with such a name (`.env`) is only a key."""
    if _FILTER_MODULES.match(text):
        return "the filter begins with a comment or imports a module"
    found = _FILTER_REACH.search(_FILTER_KEY.sub(".", text))
    return f"the filter uses {found[0]}, which reaches beyond its input" if found else None


def _parse_jq(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    rest = iter(words)
    plain, files = list[Word](), list[PathUse]()
    for word in rest:
        if word.text in _JQ_PAIRS:
            pair = _parse_jq_pair(word, rest)
            if isinstance(pair, str):
                return pair
            files += pair
        elif word.text == "--":
            return "jq's versions differ in what -- means"
        else:
            plain.append(word)
    return _parse_jq_rest(tuple(plain), files)


def _parse_jq_pair(word: Word, rest: Iterator[Word]) -> list[PathUse] | str:
    name, value = next(rest, None), next(rest, None)
    if name is None or value is None or name.globs or value.globs:
        return f"jq's option {word.text} lacks its name and value"
    return [PathUse(value.text, "read")] if _JQ_PAIRS[word.text] else []


def _parse_jq_rest(words: tuple[Word, ...], files: list[PathUse]) -> tuple[PathUse, ...] | str:
    parsed = parse_args(_JQ, words)
    if isinstance(parsed, str):
        return parsed
    if 0 in parsed.globs:
        return f"{parsed.operands[0]} is a pattern where jq has its filter"
    if fault := _refuse_filter(parsed.operands[0] if parsed.operands else ""):
        return fault
    return (*files, *list_path_uses(_JQ, parsed))


def _refuse_yq(parsed: ParsedArgs) -> str | None:
    # Two programs are called yq. A value for one of them is an option for the other.
    if odd := next((value for _, value in parsed.options if value and value.startswith("-")), None):
        return f"yq may take {odd} for an option"
    # For the one in Python, --indent abbreviates an option without a value.
    indents = [value for name, value in parsed.options if name == "--indent"]
    if odd := next((value for value in indents if not (value or "").isdigit()), None):
        return f"yq may take {odd} for its filter"
    if 0 in parsed.globs:
        return f"{parsed.operands[0]} is a pattern where yq has its filter"
    return _refuse_filter(parsed.operands[0] if parsed.operands else "")


_GNU = "help version"
_XXD_FLAG = re.compile(r"-(?:a|autoskip|b|bits|C|d|E|e|i|include|p|ps|plain|postscript|u|v|version|h)\Z")
# Only letters: if a longer name took no value from the next word, the input would pass for the value, and the output
# for the input.
_XXD_VALUE = re.compile(r"-[cglnos]\Z")
_XXD_JOINED = re.compile(r"-[cglos][+-]?[0-9][0-9a-fxA-F]*\Z")


def _parse_xxd(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    """Options come first, one per word. A word after the input is the output file, even `-r`."""
    rest = list(words)
    while rest and rest[0].text[:1] == "-" and rest[0].text != "-":
        text = rest.pop(0).text
        if text == "--":
            break
        if _XXD_VALUE.match(text) and rest:
            del rest[0]
        elif not (_XXD_FLAG.match(text) or _XXD_JOINED.match(text)):
            return f"xxd's option {text} is not among the read-only options"
    if len(rest) > 1 or any(word.globs for word in words):
        return "xxd only reads with its options first and one operand behind them"
    return tuple([PathUse(word.text, "read") for word in rest])


def _refuse_option_files(parsed: ParsedArgs) -> str | None:
    words = (*parsed.operands, *[value or "" for _, value in parsed.options])
    odd = next((word for word in words if word.startswith("@")), None)
    return odd and f"options may be in the file {odd}"


def _refuse_end_of_options(parsed: ParsedArgs) -> str | None:
    """`--` makes unzip revert the next option: `unzip -l -- -l a.zip` extracts everything."""
    return None if parsed.ended is None else "unzip treats -- in its own way"


TABLES: tuple[ProgramSpec, ...] = (
    ProgramSpec(
        name="jq",
        custom_parser=_parse_jq,
        match=(
            "jq . a.json", "jq -r '.scripts | keys[]' package.json", "jq -nc --arg a b '{a: $a}'", "jq '.env' a.json",
            "jq --slurpfile a b.json '. + $a' c.json", "jq -n '[inputs]' a b", "jq --indent 4 .", "jq '.a[0]' --tab a",
            "jq -e '.dependencies.include' a.json", "jq --args -n '$ARGS' a b",
        ),
        no_match=(
            "jq -f prog.jq a.json", "jq --from-file prog.jq a", "jq -L lib . a", "jq -rL lib . a",
            "jq 'import \"a\" as a; .'", "jq 'include \"a\"; .'", "jq env", "jq -n '$ENV.HOME'", "jq -n 'env.HOME'",
            "jq '# x' a", "jq modulemeta a", "jq --unknown . a", "jq --arg a", "jq -- . a", "jq -rf prog.jq a",
        ),
    ),
    # Two programs have this name. The table holds only arguments that both accept, or that one of them refuses. The
    # one in Go takes its first operand for a file if there is such a file.
    ProgramSpec(
        name="yq",
        also=("yq e", "yq eval", "yq ea", "yq eval-all"),
        flags="0acCehjMnNPrSvVyY",
        values="oIpw",
        long_flags="""colors no-colors exit-status help no-doc null-input nul-output prettyPrint tojson unwrapScalar=
            verbose version yaml-output yml-output yaml-roundtrip yml-roundtrip indentless indentless-lists raw-output
            compact-output sort-keys""",
        long_values="indent input-format output-format width",
        reject=_refuse_yq,
        match=(
            "yq .a a.yaml", "yq -r '.services | keys' c.yml", "yq e '.a.b' a.yaml", "yq -o json . a.yaml", "yq -y . a",
        ),
        no_match=(
            "yq -i .a=1 a.yaml", "yq --inplace .a=1 a", "yq --in-place . a", "yq -ri . a", "yq -s .a a.yaml",
            "yq -f x . a", "yq 'load(\"b\")' a", "yq '.a = load_str(\"b\")' a", "yq 'strenv(A)' a", "yq 'env(A)' a",
            "yq '..load(\"b\")' a", "yq 'eval(.a)' a", "yq 'system(\"id\")' a", "yq --from-file x a",
            "yq --split-exp .a a", "yq e -i . a", "yq -I -i . a", "yq --indent env a", "yq '.a.load(\"b\")' a",
            "yq '. | envsubst' a",
        ),
    ),
    ProgramSpec(
        name="od",
        flags="abcdfhiloOsvxX",
        values="AjNSt",
        attached="w",
        long_flags=f"strings= output-duplicates width= {_GNU}",
        long_values="address-radix endian skip-bytes read-bytes format",
        match=("od -c a.bin", "od -An -tx1 -N 16 a.bin", "od -w16 -t x1z a", "od --format=x1 a"),
        no_match=("od --output=x a", "od -k a"),
    ),
    ProgramSpec(
        name="hexdump",
        also=("hd",),
        flags="bcCdohvVxX",
        values="ens",
        attached="L",
        long_flags=f"""one-byte-octal one-byte-hex one-byte-char canonical two-bytes-decimal two-bytes-octal
            two-bytes-hex color= no-squeezing {_GNU}""",
        long_values="format length skip",
        paths={"-f": "read", "--format-file": "read"},
        match=("hexdump -C a.bin", "hexdump -n 64 -s 16 a", "hd a", "hexdump -e '16/1 \"%02x\"' a"),
        no_match=("hexdump --output=x a", "hexdump -r a"),
    ),
    ProgramSpec(
        name="xxd",
        custom_parser=_parse_xxd,
        match=("xxd a.bin", "xxd -l 64 a.bin", "xxd -c16 -g 1 a", "xxd -p", "xxd -s -16 a", "xxd -ps - "),
        no_match=(
            "xxd a b", "xxd -r a", "xxd -r -p a b", "xxd a -r", "xxd -p a b", "xxd -rp a", "xxd a*", "xxd - b",
            "xxd --r a", "xxd -revert a", "xxd -pr a", "xxd -- a b", "xxd -l 5 a b", "xxd -group 4 a",
        ),
    ),
    ProgramSpec(
        name="strings",
        flags="adfhowvV",
        values="ntesU",
        numbers=True,
        long_flags=f"all data print-file-name include-all-whitespace {_GNU}",
        long_values="bytes radix encoding unicode output-separator",
        reject=_refuse_option_files,
        match=("strings a.bin", "strings -n 8 a.bin", "strings -8 a", "strings -t x a"),
        no_match=(
            "strings @options", "strings a @options", "strings -T plugin a", "strings --target=x a", "strings -n @a b",
        ),
    ),
    ProgramSpec(
        name="nm",
        flags="aABCDegjnopPrSsuWhV",
        values="ft",
        long_flags=f"""debug-syms print-file-name demangle= no-demangle dynamic extern-only just-symbols numeric-sort
            no-sort portability reverse-sort print-size print-armap quiet size-sort special-syms synthetic
            undefined-only defined-only no-weak with-symbol-versions {_GNU}""",
        long_values="format radix",
        reject=_refuse_option_files,
        match=("nm a.o", "nm -C -D lib.so", "nm --defined-only a.o"),
        no_match=("nm --plugin x.so a.o", "nm --plugin=x.so a", "nm @options", "nm -l a", "nm -U a"),
    ),
    ProgramSpec(
        name="readelf",
        flags="ahlSgtesnrudVAcDLIWTHvz",
        values="xpR",
        long_flags=f"""all file-header program-headers segments section-headers sections section-groups section-details
            headers syms symbols dyn-syms notes relocs unwind dynamic version-info arch-specific archive-index
            use-dynamic lint histogram wide silent-truncation demangle= no-demangle decompress {_GNU}""",
        long_values="hex-dump string-dump relocated-dump",
        reject=_refuse_option_files,
        match=("readelf -h a.out", "readelf -Ws a.o", "readelf --dynamic lib.so"),
        # Debug information may be in another file, or be fetched.
        no_match=("readelf -w a", "readelf --debug-dump a", "readelf -P a", "readelf @options"),
    ),
    ProgramSpec(
        name="objdump",
        flags="afphxdDsGtTrRvHFCwz",
        values="jM",
        long_flags=f"""archive-headers file-headers private-headers headers section-headers all-headers disassemble=
            disassemble-all full-contents stabs syms dynamic-syms reloc dynamic-reloc file-offsets demangle= wide
            disassemble-zeroes no-addresses prefix-addresses show-raw-insn no-show-raw-insn show-all-symbols
            special-syms {_GNU}""",
        long_values="section disassembler-options start-address stop-address insn-width adjust-vma",
        reject=_refuse_option_files,
        match=("objdump -d a.o", "objdump -h a.out", "objdump -d -M intel --section=.text a.o"),
        # It opens sources and debug information by the names that are in the object; for -i it writes one.
        no_match=(
            "objdump -S a.o", "objdump -W a.o", "objdump --dwarf a.o", "objdump @options", "objdump -l a",
            "objdump -L a", "objdump -i",
        ),
    ),
    ProgramSpec(
        name="size",
        flags="ABGodxtfhHvV",
        long_flags=f"totals common {_GNU}",
        long_values="format radix",
        reject=_refuse_option_files,
        match=("size a.out", "size -A a.o"),
        no_match=("size @options", "size --target=plugin a"),
    ),
    ProgramSpec(
        name="zipinfo",
        flags="12smlvhtzC",
        reject=_refuse_end_of_options,
        match=("zipinfo a.zip", "zipinfo -1 a.zip", "zipinfo -t a.zip"),
        no_match=("zipinfo -M a.zip", "zipinfo --unknown a.zip"),  # -M pages
    ),
    ProgramSpec(
        name="gzip -l",
        match=("gzip -l a.gz", "gzip -l a.gz b.gz"),
        no_match=("gzip a", "gzip -l -d a.gz", "gzip -dl a.gz", "gzip -d a.gz"),
    ),
    ProgramSpec(
        name="zcat",
        match=("zcat a.gz", "zcat a.gz b.gz"),
        no_match=("zcat -S x a", "zcat --rsyncable a", "zcat -o x a"),
    ),
    ProgramSpec(
        name="unzip -l",
        reject=_refuse_end_of_options,
        match=("unzip -l a.zip", "unzip -l a.zip 'src/*'"),
        no_match=("unzip a.zip", "unzip -l -d x a.zip", "unzip -o a.zip", "unzip -lM a.zip", "unzip -l -- -l a"),
    ),
)  # fmt: skip
