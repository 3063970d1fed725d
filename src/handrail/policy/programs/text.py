"""Programs that read text: cat, head, sort, sed, diff, digests."""

import re

from handrail.policy.programs.spec import ParsedArgs, ProgramSpec

_GNU = "help version"
# iconv takes a name with a slash for a file that defines the encoding.
_ENCODING = re.compile(r"[^/]*(?://[A-Za-z]*)*\Z")


def _refuse_old_options(parsed: ParsedArgs) -> str | None:
    """`+5` is a number or a file, which makes no difference here. `+5f` would follow the file."""
    odd = next((text for text in parsed.operands if text.startswith("+") and not text[1:].isdigit()), None)
    return odd and f"tail may take {odd} for options"


def _reads_byte_count(parsed: ParsedArgs) -> bool:
    return bool(parsed.options) and all(
        name in {"-c", "--bytes"} and (value or "-")[0].isdigit() for name, value in parsed.options
    )


def _refuse_charmap(parsed: ParsedArgs) -> str | None:
    odd = next((value for _, value in parsed.options if value and not _ENCODING.match(value)), None)
    return odd and f"iconv may read {odd} as a file"


_SHORT_NUMBER = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{0,3})?\Z")


def _refuse_output(parsed: ParsedArgs) -> str | None:
    return "uniq may take an option after its input for its output" if parsed.mixed else None


def _refuse_endless(parsed: ParsedArgs) -> str | None:
    names = {name for name, _ in parsed.options}
    return (
        ("shuf -r never ends without -n") if names & {"-r", "--repeat"} and not names & {"-n", "--head-count"} else None
    )


def _refuse_infinity(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not _SHORT_NUMBER.match(text)), None)
    return odd and f"seq may never come to {odd}"


# sed scripts can write files (w), read others (r) and run programs (e). These commands only print: p, d, q, = and s
# without the flags e and w. A delimiter inside brackets ends a pattern in some versions, so such patterns have none.
_SED_BRACKET = r"[^\]\[\\\n{d}]|\[:[a-z]+:\]"
_SED_PART = rf"(?:[^\\\n\[{{d}}]|\\[^\n]|\[\^?(?:\]|{_SED_BRACKET})(?:{_SED_BRACKET})*\])*"
_SED_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_SED_PART.format(d='/')}/I?)"
_SED_SUBSTITUTIONS = "|".join(
    rf"s{d}{_SED_PART.format(d=d)}{d}(?:[^\\\n{d}]|\\[^\n])*{d}[gpiI0-9]*" for d in ("/", r"\|", ",", "#", "@")
)
_SED_COMMAND = (
    rf"(?:{_SED_ADDRESS}(?:,(?:\+[0-9]+|{_SED_ADDRESS}))?\s*(?:!\s*)?)?(?:[pd=]|q[0-9]*|{_SED_SUBSTITUTIONS})"
)
_SED_SCRIPT = re.compile(rf"\s*(?:{_SED_COMMAND})(?:\s*;\s*(?:{_SED_COMMAND}))*\s*(?:;\s*)?\Z", re.ASCII)


def _refuse_script(parsed: ParsedArgs) -> str | None:
    scripts = [value or "" for name, value in parsed.options if name in {"-e", "--expression"}]
    scripts = scripts or list(parsed.operands[:1])
    odd = next((script for script in scripts if not _SED_SCRIPT.match(script)), None)
    if odd is None and scripts:
        return None
    return f"sed's program {odd} may do more than print and replace text" if scripts else "sed has no program"


_DIFF_FORMATS = " ".join(
    [f"{group}-group-format" for group in ("old", "new", "unchanged", "changed")]
    + [f"{line}-line-format" for line in ("old", "new", "unchanged")]
)


TABLES: tuple[ProgramSpec, ...] = (
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
        always_ends=_reads_byte_count,
        match=(
            "head a.txt", "head -5 a.txt", "head -n 5 a.txt b.txt", "head -qn-3 a", "head --bytes=20 a", "head -c 1K a",
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
        reject=_refuse_old_options,
        match=("tail a.txt", "tail -20 a.txt", "tail -n +5 a.txt", "tail -c 10 a", "tail --lines=3 a", "tail +5 a"),
        # Following a file never ends.
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
        long_values="""body-numbering section-delimiter footer-numbering header-numbering line-increment
            join-blank-lines number-format number-separator starting-line-number number-width""",
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
        long_flags=f"""ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting
            month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check= debug merge stable unique
            zero-terminated {_GNU}""",
        long_values="sort key buffer-size field-separator batch-size parallel",
        paths={"--random-source": "read"},
        grantable=False,
        match=(
            "sort", "sort -u a.txt", "sort -t, -k2,2nr a b", "sort -rn --key=1 a", "sort --check=quiet a", "sort a -u",
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
        # The second operand is the output. A pattern may become two operands.
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
        long_values="""table-name table-order table-columns table-columns-limit table-noextreme table-hide table-right
            table-truncate table-wrap tree tree-id tree-parent output-width output-separator separator table-column""",
        match=("column -t a.txt", "column -s, -t a.csv", "column -t -s : -o ' '"),
        no_match=("column --unknown a", "column -z a", "column -n a"),  # -n takes no value in some versions
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
    ProgramSpec(
        name="sha256sum",
        also=("md5sum", "sha1sum", "sha224sum", "sha384sum", "sha512sum"),
        flags="btz",
        long_flags=f"binary tag text zero {_GNU}",
        match=("sha256sum a.bin", "md5sum a b", "sha1sum --tag a", "sha512sum -b dist/*"),
        no_match=("sha256sum -c SHA256SUMS", "md5sum --check a", "sha256sum -bc a", "sha256sum --unknown a"),
    ),
    ProgramSpec(
        name="b2sum",
        flags="btz",
        values="l",
        long_flags=f"binary tag text zero {_GNU}",
        long_values="length",
        match=("b2sum a.bin", "b2sum -l 256 a.bin"),
        no_match=("b2sum -c a", "b2sum --check a"),
    ),
    ProgramSpec(
        name="cksum",
        flags="z",
        values="al",
        long_flags=f"tag untagged raw base64 zero debug {_GNU}",
        long_values="algorithm length",
        match=("cksum a.bin", "cksum -a sha256 a.bin"),
        no_match=("cksum -c a", "cksum --check a"),
    ),
    ProgramSpec(
        name="sum",
        flags="rs",
        long_flags=f"sysv {_GNU}",
        match=("sum a.bin", "sum -s a"),
        no_match=("sum -o x a", "sum --output=x a"),
    ),
    ProgramSpec(
        name="base64",
        also=("base32",),
        flags="di",
        values="w",
        long_flags=f"decode ignore-garbage {_GNU}",
        long_values="wrap",
        match=("base64 a.bin", "base64 -d a.txt", "base64 -w0 a", "base32 a"),
        no_match=("base64 -o x a", "base64 --output=x a"),
    ),
    ProgramSpec(
        name="basenc",
        flags="di",
        values="w",
        long_flags=f"base64 base64url base32 base32hex base16 base2msbf base2lsbf z85 decode ignore-garbage {_GNU}",
        long_values="wrap",
        match=("basenc --base64url a.bin", "basenc --base16 -d a.txt"),
        no_match=("basenc -o x a", "basenc --output=x a"),
    ),
    ProgramSpec(
        name="sed",
        flags="nErsuz",
        values="e",
        long_flags="""quiet silent regexp-extended separate unbuffered null-data zero-terminated posix sandbox debug
            help version""",
        long_values="expression",
        first="text",
        unless_options=frozenset({"-e", "--expression"}),
        reject=_refuse_script,
        grantable=False,
        match=(
            "sed -n 1,20p a.txt", "sed -n '5p' a.txt", "sed -n '1,5p;10p;$p' a", "sed -n '10,$p' a", "sed -ne 3p a",
            "sed --quiet --expression=7p a", "sed -n '100,120p;120q' a", "sed 10q a", "sed -n '$=' a", "sed -n 3,+2p a",
            "sed s/a/b/ a", "sed 's/.md//' a", "sed -E 's/(a|b)[.]?/x/' a", "sed -n /x/p a", "sed '/^#/d;/^$/d' a",
            "sed 's|a/b|c|g; s,x,y,2p' a", "sed -n '/a/,/b/p' a", "sed '$!d' a", "sed 's/\\//_/g' a", "sed q a",
            "sed 's/[[:space:]]*$//' a",
        ),
        no_match=(
            "sed -i 5p a", "sed -n -i 5p a", "sed -n '1w out' a", "sed -n '1e id' a", "sed s/a/b/e a",
            "sed 's/a/b/w x' a", "sed 's/a/b/gw x' a", "sed 's/[/]/;w x;s/]/a/' a", "sed '/x/w out' a",
            "sed 's/a/b/;w x' a", "sed '/x/{p}' a",
            "sed 'y/a/b/;e id' a", "sed 's/a/b/m;1e id' a", "sed -i s/a/b/ a", "sed 'sxaxbxe' a", "sed 's/a/\\\nb/e' a",
            "sed '\\,a,w x' a", "sed 's/a\\/b/w x' a", "sed 's,[,],w x' a", "sed '1a x' a", "sed 1R.env a",
            "sed --in-place 5p a", "sed -f script a", "sed -n '1r other' a", "sed -n 1,2pw a", "sed -n", "sed -nf 5p a",
            "sed -n -e 5p -e '1e id' a", "sed 's/.*/id/e' a", "sed -n '1p\\nw x' a", "sed -n 1p* a", "sed -ni 1p a",
        ),
    ),
    ProgramSpec(
        name="diff",
        flags="abBcdeEiNnpqrstTuvwyZ",
        values="CDFILSUWx",
        numbers=True,
        long_flags="""normal brief report-identical-files context= unified= ed rcs side-by-side left-column
            suppress-common-lines show-c-function expand-tabs initial-tab suppress-blank-empty recursive no-dereference
            new-file unidirectional-new-file ignore-file-name-case no-ignore-file-name-case ignore-case
            ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines text
            strip-trailing-cr minimal speed-large-files color= help version""",
        long_values=f"""width show-function-line label tabsize exclude starting-file ignore-matching-lines ifdef
            line-format horizon-lines palette {_DIFF_FORMATS}""",
        paths={"-X": "read", "--exclude-from": "read", "--from-file": "read", "--to-file": "read"},
        match=(
            "diff a b", "diff -u a b", "diff -ruN --exclude=node_modules a b", "diff -U 5 a b", "diff -y -W 160 a b",
            "diff --color=never --unified=1 a b", "diff a b -q", "diff --from-file=a b c", "diff -u5 a b",
        ),
        no_match=("diff -l a b", "diff -ul a b", "diff --paginate a b", "diff --output=x a b", "diff --pag a b"),
    ),
    ProgramSpec(
        name="cmp",
        flags="blsv",
        values="in",
        long_flags="print-bytes verbose quiet silent help version",
        long_values="ignore-initial bytes",
        match=("cmp a b", "cmp -s a b", "cmp -n 100 -b a b"),
        no_match=("cmp -o x a b", "cmp --output=x a b"),
    ),
)  # fmt: skip
