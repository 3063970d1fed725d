"""The read-only sub-commands of git that show history: log, diff, show, blame."""

import re

from msgspec.structs import replace

from handrail.policy.programs.git_paths import list_content_paths
from handrail.policy.programs.spec import ParsedArgs, ProgramSpec

# An option whose value git takes only after `=` is listed with its equals sign. In `--format --output=x` git obeys the
# second word, so it must not pass as the value of the first.
_DIFF_FLAGS = "puswbRaWz"
_DIFF_ATTACHED = "MCBUX"
_DIFF_VALUES = "SGlI"
_DIFF_LONG = """
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
_WALK_FLAGS = "iEFPg"
_WALK_LONG = """
    all branches= tags= remotes= glob== exclude== merges no-merges min-parents== max-parents== no-min-parents
    no-max-parents first-parent exclude-first-parent-only not reflog walk-reflogs merge boundary left-only right-only
    cherry-mark cherry-pick cherry left-right date-order author-date-order topo-order reverse simplify-by-decoration
    simplify-merges show-pulls full-history dense sparse ancestry-path= date== relative-date parents children
    abbrev-commit no-abbrev-commit encoding== all-match invert-grep regexp-ignore-case basic-regexp extended-regexp
    fixed-strings perl-regexp remove-empty no-walk= do-walk since-as-filter== graph no-graph pretty= format== oneline
    notes= no-notes show-notes= no-standard-notes expand-tabs= no-expand-tabs show-linear-break= ignore-missing
    no-show-signature
"""
_WALK_VALUES = "max-count skip since until after before author grep grep-reflog"
_LOG_FLAGS = _DIFF_FLAGS + _WALK_FLAGS + "cmtq"
_LOG_VALUES = _DIFF_VALUES + "nL"
_LOG_LONG = f"""{_DIFF_LONG} {_WALK_LONG}
    decorate= no-decorate decorate-refs== decorate-refs-exclude== clear-decorations source follow full-diff log-size
    mailmap no-mailmap use-mailmap no-use-mailmap diff-merges== no-diff-merges cc combined-all-paths
"""
_LOG_LONG_VALUES = f"{_WALK_VALUES} committer"
_FORMATS = frozenset(["oneline", "short", "medium", "full", "fuller", "reference", "email", "mboxrd", "raw"])
_MERGES = frozenset(
    ["off", "none", "on", "m", "first-parent", "1", "separate", "c", "combined", "cc", "dense-combined"]
)
_RUNS_A_PROGRAM = re.compile(r"%[-+ ]?G|%[-+ ]?\([^)]*(?:signature|describe)")


def _refuse_format(parsed: ParsedArgs) -> str | None:
    """A format may run gpg for signatures, or git for descriptions. A name may stand for such a format."""
    for name, value in parsed.options:
        if value is None:
            continue
        if _RUNS_A_PROGRAM.search(value):
            return f"{name}={value} runs another program"
        if name == "--diff-merges" and value not in _MERGES:
            return f"{name}={value} may write to the repository"
        if name in {"--pretty", "--format"} and not _is_plain_format(value):
            return f"{name}={value} names a format that configuration defines"
    return None


def refuse_fields(parsed: ParsedArgs) -> str | None:
    """As `_refuse_format`, for branch, tag and for-each-ref, whose formats have no names."""
    for name, value in parsed.options:
        if value is None:
            continue
        # Sorting evaluates the field too: --sort=-v:*signature.
        if _RUNS_A_PROGRAM.search(value) or (name == "--sort" and re.search("signature|describe", value)):
            return f"{name}={value} runs another program"
    return None


def _is_plain_format(value: str) -> bool:
    return not value or "%" in value or value in _FORMATS or value.startswith(("format:", "tformat:"))


_GUARDS = "--no-ext-diff --no-textconv"
_REFUSED_OPTIONS = ("--output=x", "--output x", "--ext-diff", "--textconv", "-O order", "--outpu=x")


def _build_log_spec(name: str, *, examples: tuple[str, ...] = ()) -> ProgramSpec:
    refused = (
        *_REFUSED_OPTIONS, "--show-signature", "--format=%G?", "--pretty=mine", "--format --output=x", "--remerge-diff",
    )  # fmt: skip
    return ProgramSpec(
        name=name,
        flags=_LOG_FLAGS,
        attached=_DIFF_ATTACHED,
        values=_LOG_VALUES,
        long_flags=_LOG_LONG,
        long_values=_LOG_LONG_VALUES,
        numbers=True,
        operands="text",
        guards=_GUARDS,
        extra_paths=list_content_paths,
        reject=_refuse_format,
        grantable=False,
        match=(name, f"{name} -5", f"{name} -n 5 --oneline --stat", *(f"{name} {words}" for words in examples)),
        no_match=tuple(f"{name} {words}" for words in refused),
    )


def _build_diff_spec(
    name: str, *, flags: str = "", long_flags: str = "", values: str = _DIFF_VALUES, examples: tuple[str, ...] = ()
) -> ProgramSpec:
    return ProgramSpec(
        name=name,
        flags=_DIFF_FLAGS + flags,
        attached=_DIFF_ATTACHED + ("" if values else _DIFF_VALUES),
        values=values,
        long_flags=f"{_DIFF_LONG} {long_flags}",
        operands="text",
        guards=_GUARDS if values else "",  # an option would make `stash show` print a patch
        extra_paths=list_content_paths,
        reject=_refuse_format,
        grantable=False,
        match=(name, f"{name} --stat", f"{name} -M90% -U5 --name-only", *(f"{name} {words}" for words in examples)),
        no_match=tuple(f"{name} {words}" for words in (*_REFUSED_OPTIONS, "--no-index a b")),
    )


def _refuse_subcommand(parsed: ParsedArgs) -> str | None:
    # `git reflog WORD` is `git reflog show WORD`, unless the word is a sub-command in some version of git.
    if any(not operand.startswith(("HEAD", "@", "refs/")) for operand in parsed.operands):
        return "git reflog may have a sub-command of that name"
    return _refuse_format(parsed)


HISTORY: tuple[ProgramSpec, ...] = (
    _build_log_spec(
        "git log",
        examples=(
            "main -- src/a.py", "-p --follow src/a.py", "--since='2 weeks ago' --author=me", "-L10,20:src/a.py",
            "--graph --oneline --all --decorate", "--pretty=format:'%h %s'", "--format=%H origin/main..HEAD",
            "-S needle --name-status", "--no-merges --first-parent", "-1 --format=fuller", "--grep fix -i",
        ),
    ),
    _build_log_spec(
        "git show",
        examples=(
            "HEAD:src/a.py", "HEAD --stat", "v1.0", "abc123 -- src/a.py", ":src/a.py", "-s HEAD",
            "--name-only --format= HEAD", "--pretty= --stat HEAD",
        ),
    ),
    _build_log_spec("git whatchanged"),
    _build_log_spec("git stash list"),
    _build_log_spec("git reflog show", examples=("main",)),
    replace(
        _build_log_spec("git reflog"),
        reject=_refuse_subcommand,
        grantable=True,
        match=("git reflog", "git reflog -10", "git reflog HEAD", "git reflog --date=iso"),
        no_match=(
            "git reflog expire --all", "git reflog delete HEAD@{1}", "git reflog --format=%GS", "git reflog drop x",
        ),
    ),
    _build_diff_spec(
        "git diff",
        flags="cq0123",
        long_flags="cached staged merge-base base ours theirs cc",
        examples=(
            "HEAD~1", "main...HEAD -- src", "--cached", "--staged -w", "src/a.py", "HEAD -- '*.py' ':!*.lock'", "--",
            "HEAD~1 HEAD --word-diff", "--diff-filter=AM --name-status", "a b",
        ),
    ),
    # It separates options from operands first: in `-S 0 -G --output=x` the value of -S is -G.
    _build_diff_spec(
        "git stash show",
        flags="u",
        long_flags="include-untracked only-untracked",
        values="",
        examples=("-p stash@{1}", "-Sneedle -p"),
    ),
    _build_diff_spec(
        "git diff-tree",
        flags="rtmcv",
        long_flags="cc root no-commit-id always merge-base pretty= format== oneline no-notes",
        examples=("-r --no-commit-id --name-only HEAD", "--pretty=oneline HEAD"),
    ),
    _build_diff_spec(
        "git diff-index", flags="mrt", long_flags="cached merge-base", examples=("--cached HEAD", "--quiet HEAD --"),
    ),
    _build_diff_spec("git diff-files", flags="qcr0123", long_flags="base ours theirs cc", examples=("-q",)),
    ProgramSpec(
        name="git rev-list",
        flags=_WALK_FLAGS,
        values="n",
        long_flags=f"""{_WALK_LONG} count objects objects-edge header timestamp quiet use-bitmap-index disk-usage=
            abbrev= no-abbrev commit-header no-commit-header bisect bisect-all object-names no-object-names""",
        long_values=f"{_WALK_VALUES} committer",
        numbers=True,
        operands="text",
        extra_paths=list_content_paths,
        reject=_refuse_format,
        match=("git rev-list --count HEAD", "git rev-list --all -n 5", "git rev-list --left-right --count a...b"),
        no_match=("git rev-list --format=%G? HEAD", "git rev-list --stdin", "git rev-list --filter=blob:none HEAD"),
    ),
    ProgramSpec(
        name="git shortlog",
        flags="snecEFPi",
        attached="w",
        long_flags=f"{_WALK_LONG} summary numbered email committer group==",
        long_values=_WALK_VALUES,
        operands="text",
        extra_paths=list_content_paths,
        reject=_refuse_format,
        match=(
            "git shortlog -sn", "git shortlog -sne HEAD", "git shortlog --since=2.weeks -s", "git shortlog -n -s HEAD",
        ),
        no_match=("git shortlog --output=x", "git shortlog --group=format:%GS HEAD", "git shortlog --format=mine HEAD"),
    ),
    ProgramSpec(
        name="git blame",
        also=("git annotate",),
        flags="ltsefnwpbc",
        attached="MC",
        values="L",
        long_flags="""porcelain line-porcelain incremental root date== since== reverse first-parent show-email show-name
            show-number show-stats color-lines color-by-age abbrev= score-debug minimal no-progress encoding==""",
        long_values="ignore-rev",
        paths={"--contents": "read", "--ignore-revs-file": "read", "-S": "read"},
        operands="text",
        guards=_GUARDS,
        extra_paths=list_content_paths,
        match=(
            "git blame src/a.py", "git blame -L 10,20 src/a.py", "git blame -w HEAD~3 -- src/a.py",
            "git blame -C -C --date=short --porcelain src/a.py", "git blame -L10,+5 src/a.py",
        ),
        no_match=("git blame --textconv a", "git blame --ext-diff a", "git blame --output=x a"),
    ),
    ProgramSpec(
        name="git cherry",
        flags="v",
        long_flags="abbrev= verbose",
        operands="text",
        extra_paths=list_content_paths,
        match=("git cherry -v main", "git cherry main feature"),
        no_match=("git cherry --output=x",),
    ),
)  # fmt: skip
