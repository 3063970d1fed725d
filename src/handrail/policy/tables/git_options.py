"""Options that many of git's sub-commands share, and what among their values asks.

Where git takes a value only behind `=`, the option is listed with its equals sign: of `--format --output=x` git would
obey the second word, so it must not pass as the value of the first.
"""

import re

from handrail.policy.tables.form import ParsedArgs

DIFF_FLAGS = "puswbRaWz"
DIFF_ATTACHED = "MCBUX"
DIFF_VALUES = "SGlI"
DIFF_LONG = """
    patch no-patch unified== raw patch-with-raw patch-with-stat indent-heuristic no-indent-heuristic minimal patience
    histogram anchored== diff-algorithm== stat= stat-width== stat-count== stat-name-width== stat-graph-width==
    compact-summary numstat shortstat dirstat= cumulative dirstat-by-file= summary name-only name-status color=
    no-color color-moved= no-color-moved color-moved-ws== no-color-moved-ws word-diff= word-diff-regex== color-words=
    no-renames rename-empty no-rename-empty check ws-error-highlight== full-index binary abbrev= no-abbrev
    break-rewrites= find-renames= find-copies= find-copies-harder irreversible-delete diff-filter== find-object==
    pickaxe-all pickaxe-regex skip-to== rotate-to== relative= no-relative text ignore-cr-at-eol ignore-space-at-eol
    ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines== inter-hunk-context==
    function-context exit-code quiet no-ext-diff no-textconv ignore-submodules= src-prefix== dst-prefix== no-prefix
    default-prefix line-prefix== output-indicator-new== output-indicator-old== output-indicator-context==
"""

WALK_FLAGS = "iEFPg"
WALK_LONG = """
    all branches= tags= remotes= glob== exclude== merges no-merges min-parents== max-parents== no-min-parents
    no-max-parents first-parent exclude-first-parent-only not reflog walk-reflogs merge boundary left-only right-only
    cherry-mark cherry-pick cherry left-right date-order author-date-order topo-order reverse simplify-by-decoration
    simplify-merges show-pulls full-history dense sparse ancestry-path= date== relative-date parents children
    abbrev-commit no-abbrev-commit encoding== all-match invert-grep regexp-ignore-case basic-regexp extended-regexp
    fixed-strings perl-regexp remove-empty no-walk= do-walk since-as-filter== graph no-graph pretty= format== oneline
    notes= no-notes show-notes= no-standard-notes expand-tabs= no-expand-tabs show-linear-break= ignore-missing
    no-show-signature
"""
WALK_VALUES = "max-count skip since until after before author grep grep-reflog"

LOG_FLAGS = DIFF_FLAGS + WALK_FLAGS + "cmtq"
LOG_VALUES = DIFF_VALUES + "nL"
LOG_LONG = f"""{DIFF_LONG} {WALK_LONG}
    decorate= no-decorate decorate-refs== decorate-refs-exclude== clear-decorations source follow full-diff log-size
    mailmap no-mailmap use-mailmap no-use-mailmap diff-merges== no-diff-merges cc combined-all-paths
"""
LOG_LONG_VALUES = f"{WALK_VALUES} committer"

FORMATS = frozenset(["oneline", "short", "medium", "full", "fuller", "reference", "email", "mboxrd", "raw"])
_MERGES = frozenset(
    ["off", "none", "on", "m", "first-parent", "1", "separate", "c", "combined", "cc", "dense-combined"]
)
_RUNS_A_PROGRAM = re.compile(r"%[-+ ]?G|%[-+ ]?\([^)]*(?:signature|describe)")


def refuse_format(parsed: ParsedArgs) -> str | None:
    """A format that checks signatures runs gpg, one that describes runs git again; another name stands for either."""
    for name, value in parsed.options:
        if value is None:
            continue
        if _RUNS_A_PROGRAM.search(value):
            return f"{name}={value} runs another program"
        if name == "--diff-merges" and value not in _MERGES:
            return f"{name}={value} may write to the repository"
        if name in {"--pretty", "--format"} and not _is_plain(value):
            return f"{name}={value} names a format that configuration defines"
    return None


def refuse_fields(parsed: ParsedArgs) -> str | None:
    """As `refuse_format`, where a format is made of fields and never a name: branch, tag, for-each-ref."""
    for name, value in parsed.options:
        if value is None:
            continue
        # To sort by a field shows it too, whatever stands before it: --sort=-v:*signature.
        if _RUNS_A_PROGRAM.search(value) or (name == "--sort" and re.search("signature|describe", value)):
            return f"{name}={value} runs another program"
    return None


def _is_plain(value: str) -> bool:
    # An empty one shows nothing of the commit; no name is empty.
    return not value or "%" in value or value in FORMATS or value.startswith(("format:", "tformat:"))
