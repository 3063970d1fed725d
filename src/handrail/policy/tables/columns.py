"""Programs that pick, order and join lines and columns."""

import re

from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_GNU = "help version"
_COUNTED = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{0,3})?\Z")


def _refuse_output(parsed: ParsedArgs) -> str | None:
    return "uniq may take an option behind its input for its output" if parsed.mixed else None


def _refuse_endless(parsed: ParsedArgs) -> str | None:
    names = {name for name, _ in parsed.options}
    return "shuf -r only ends with -n" if names & {"-r", "--repeat"} and not names & {"-n", "--head-count"} else None


def _refuse_infinity(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not _COUNTED.match(text)), None)
    return odd and f"seq may never come to {odd}"


COLUMNS = (
    ProgramSpec(
        name="cut",
        flags="nsz",
        values="bcdfFO",
        long_flags=f"complement only-delimited zero-terminated {_GNU}",
        long_values="bytes characters delimiter fields output-delimiter",
        match=("cut -d' ' -f1 a.txt", "cut -d: -f 1,3 --complement a", "cut --fields=1 a", "cut -c1-80"),
        no_match=("cut -o x a", "cut --output=x a"),
    ),
    ProgramSpec(
        name="tr",
        flags="cCdst",
        long_flags=f"complement delete squeeze-repeats truncate-set1 {_GNU}",
        operands="text",
        match=("tr a-z A-Z", "tr -d '\\n'", "tr -cs a-z '\\n'", "tr -s ' '"),
        no_match=("tr -o x", "tr --del a"),
    ),
    ProgramSpec(
        name="sort",
        flags="bcCdfghiMmnRrsuVz",
        values="kSt",
        long_flags="ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting "
        "month-sort "
        "human-numeric-sort numeric-sort random-sort reverse version-sort check= debug merge stable unique "
        f"zero-terminated {_GNU}",
        long_values="sort key buffer-size field-separator batch-size parallel",
        paths={"--random-source": "read"},
        grantable=False,
        match=(
            "sort", "sort -u a.txt", "sort -t, -k2,2nr a b", "sort -rn --key=1 a", "sort --check=quiet a",
            "sort a -u",
        ),
        no_match=(
            "sort -o a a", "sort -uo a a", "sort a -oa", "sort --output=a a", "sort --outp a a", "sort --output a a",
            "sort --compress-program=sh a", "sort -T /tmp a", "sort -uT. a", "sort --temporary-directory=x a",
            "sort --files0-from=list", "sort +1 -2 a",
        ),
    ),
    ProgramSpec(
        name="uniq",
        flags="cdDiuz",
        values="fsw",
        long_flags=f"count repeated all-repeated= group= ignore-case unique zero-terminated {_GNU}",
        long_values="skip-fields skip-chars check-chars",
        most=1,
        reject=_refuse_output,
        match=("uniq", "uniq -c", "uniq -cd a.txt", "uniq --all-repeated=separate a"),
        # The second operand is the output; so may be the second file that a pattern stands for.
        no_match=("uniq a b", "uniq -c a b", "uniq - b", "uniq -- a b", "uniq a*", "uniq --unknown a", "uniq a -c"),
    ),
    ProgramSpec(
        name="comm",
        flags="123z",
        long_flags=f"check-order nocheck-order total zero-terminated {_GNU}",
        long_values="output-delimiter",
        match=("comm a b", "comm -12 a b", "comm -3 --total a -"),
        no_match=("comm -o x a b", "comm --output=x a b"),
    ),
    ProgramSpec(
        name="join",
        flags="iz",
        values="aejotv12",
        long_flags=f"ignore-case check-order nocheck-order header zero-terminated {_GNU}",
        match=("join a b", "join -t, -1 2 -2 1 a b", "join -a1 -o 1.1,2.2 a b"),
        no_match=("join --output=x a b", "join -x a b"),
    ),
    ProgramSpec(
        name="paste",
        flags="sz",
        values="d",
        long_flags=f"serial zero-terminated {_GNU}",
        long_values="delimiters",
        match=("paste a b", "paste -sd,", "paste -d '\\t' - -"),
        no_match=("paste -o x a b", "paste --output=x a"),
    ),
    ProgramSpec(
        name="column",
        flags="tdeLJxhV",
        values="ONlEHRTWripcosC",
        long_flags=f"table table-noheadings table-header-repeat keep-empty-lines json fillrows {_GNU}",
        long_values="table-name table-order table-columns table-columns-limit table-noextreme table-hide table-right "
        "table-truncate table-wrap tree tree-id tree-parent output-width output-separator separator table-column",
        match=("column -t a.txt", "column -s, -t a.csv", "column -t -s : -o ' '"),
        no_match=("column --unknown a", "column -z a", "column -n a"),  # of -n some versions take no value
    ),
    ProgramSpec(
        name="shuf",
        flags="erz",
        values="in",
        long_flags=f"echo repeat zero-terminated {_GNU}",
        long_values="input-range head-count",
        paths={"--random-source": "read"},
        reject=_refuse_endless,
        match=("shuf a.txt", "shuf -n 3 a.txt", "shuf -i 1-10", "shuf -r -n 5 a.txt"),
        no_match=("shuf -r a", "shuf -o b a", "shuf -n3 -ob a", "shuf --output=b a"),
    ),
    ProgramSpec(
        name="tsort",
        flags="w",
        long_flags=_GNU,
        match=("tsort a.txt", "tsort"),
        no_match=("tsort -o x", "tsort --output=x a"),
    ),
    ProgramSpec(
        name="numfmt",
        flags="z",
        values="d",
        long_flags=f"debug grouping header= zero-terminated {_GNU}",
        long_values="delimiter field format from from-unit invalid padding round suffix to to-unit",
        operands="text",
        match=("numfmt --to=iec 1048576", "numfmt --field=2 --to si"),
        no_match=("numfmt -o x 1", "numfmt --output=x 1"),
    ),
    ProgramSpec(
        name="seq",
        flags="w",
        values="fs",
        numbers=True,
        long_flags=f"equal-width {_GNU}",
        long_values="format separator",
        operands="text",
        reject=_refuse_infinity,
        match=("seq 5", "seq 1 2 10", "seq 10 -1 1", "seq -s, -w 1 10", "seq 0 0.1 1"),
        no_match=("seq inf", "seq -o x 5", "seq --output=x 5"),
    ),
)  # fmt: skip
