"""Programs that compare files."""

from handrail.policy.tables.form import ProgramSpec

_FORMATS = " ".join(
    [f"{group}-group-format" for group in ("old", "new", "unchanged", "changed")]
    + [f"{line}-line-format" for line in ("old", "new", "unchanged")]
)

COMPARISONS = (
    ProgramSpec(
        name="diff",
        flags="abBcdeEiNnpqrstTuvwyZ",
        values="CDFILSUWx",
        numbers=True,
        long_flags="normal brief report-identical-files context= unified= ed rcs side-by-side left-column "
        "suppress-common-lines show-c-function expand-tabs initial-tab suppress-blank-empty recursive no-dereference "
        "new-file unidirectional-new-file ignore-file-name-case no-ignore-file-name-case ignore-case "
        "ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines text "
        "strip-trailing-cr minimal speed-large-files color= help version",
        long_values="width show-function-line label tabsize exclude starting-file ignore-matching-lines ifdef "
        f"line-format horizon-lines palette {_FORMATS}",
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
