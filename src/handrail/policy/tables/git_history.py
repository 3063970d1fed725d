"""git's sub-commands that show history and contents, as far as they only read."""

from handrail.policy.commands.revisions import list_content_paths
from handrail.policy.tables.form import ParsedArgs, ProgramSpec
from handrail.policy.tables.git_options import (
    DIFF_ATTACHED,
    DIFF_FLAGS,
    DIFF_LONG,
    DIFF_VALUES,
    LOG_FLAGS,
    LOG_LONG,
    LOG_LONG_VALUES,
    LOG_VALUES,
    WALK_FLAGS,
    WALK_LONG,
    WALK_VALUES,
    refuse_format,
)

_GUARDS = "--no-ext-diff --no-textconv"
_NEVER = ("--output=x", "--output x", "--ext-diff", "--textconv", "-O order", "--outpu=x")


def _log(name: str, *, examples: tuple[str, ...] = (), **others: str) -> ProgramSpec:
    """A sub-command that takes what `git log` takes."""
    bad = (*_NEVER, "--show-signature", "--format=%G?", "--pretty=mine", "--format --output=x", "--remerge-diff")
    return ProgramSpec(
        name=name,
        flags=LOG_FLAGS + others.get("flags", ""),
        attached=DIFF_ATTACHED,
        values=LOG_VALUES,
        long_flags=f"{LOG_LONG} {others.get('long_flags', '')}",
        long_values=LOG_LONG_VALUES,
        numbers=True,
        operands="text",
        guards=_GUARDS,
        extra_paths=list_content_paths,
        reject=refuse_format,
        grantable=False,
        match=(name, f"{name} -5", f"{name} -n 5 --oneline --stat", *(f"{name} {words}" for words in examples)),
        no_match=tuple(f"{name} {words}" for words in bad),
    )


def _diff(
    name: str, *, flags: str = "", long_flags: str = "", values: str = DIFF_VALUES, examples: tuple[str, ...] = ()
) -> ProgramSpec:
    """A sub-command that takes what `git diff` takes."""
    return ProgramSpec(
        name=name,
        flags=DIFF_FLAGS + flags,
        attached=DIFF_ATTACHED + ("" if values else DIFF_VALUES),
        values=values,
        long_flags=f"{DIFF_LONG} {long_flags}",
        operands="text",
        guards=_GUARDS if values else "",  # with an option, `stash show` shows a patch; it starts no program anyway
        extra_paths=list_content_paths,
        reject=refuse_format,
        grantable=False,
        match=(name, f"{name} --stat", f"{name} -M90% -U5 --name-only", *(f"{name} {words}" for words in examples)),
        no_match=tuple(f"{name} {words}" for words in (*_NEVER, "--no-index a b")),
    )


def _refuse_subcommand(parsed: ParsedArgs) -> str | None:
    # `git reflog WORD` is `git reflog show WORD`, unless the word is a sub-command of today's or tomorrow's git.
    if any(not operand.startswith(("HEAD", "@", "refs/")) for operand in parsed.operands):
        return "git reflog may have a sub-command of that name"
    return refuse_format(parsed)


_LOGS = (
    _log(
        "git log",
        examples=(
            "main -- src/a.py", "-p --follow src/a.py", "--since='2 weeks ago' --author=me", "-L10,20:src/a.py",
            "--graph --oneline --all --decorate", "--pretty=format:'%h %s'", "--format=%H origin/main..HEAD",
            "-S needle --name-status", "--no-merges --first-parent", "-1 --format=fuller", "--grep fix -i",
        ),
    ),
    _log(
        "git show",
        examples=(
            "HEAD:src/a.py", "HEAD --stat", "v1.0", "abc123 -- src/a.py", ":src/a.py", "-s HEAD",
            "--name-only --format= HEAD", "--pretty= --stat HEAD",
        ),
    ),
    _log("git whatchanged"),
    _log("git stash list"),
    _log("git reflog show", examples=("main",)),
)  # fmt: skip
_REFLOG = ProgramSpec(
    name="git reflog",
    flags=LOG_FLAGS,
    attached=DIFF_ATTACHED,
    values=LOG_VALUES,
    long_flags=LOG_LONG,
    long_values=LOG_LONG_VALUES,
    numbers=True,
    operands="text",
    guards=_GUARDS,
    extra_paths=list_content_paths,
    reject=_refuse_subcommand,
    match=("git reflog", "git reflog -10", "git reflog HEAD", "git reflog --date=iso"),
    no_match=("git reflog expire --all", "git reflog delete HEAD@{1}", "git reflog --format=%GS", "git reflog drop x"),
)
_DIFFS = (
    _diff(
        "git diff",
        flags="cq0123",
        long_flags="cached staged merge-base base ours theirs cc",
        examples=(
            "HEAD~1", "main...HEAD -- src", "--cached", "--staged -w", "src/a.py", "HEAD -- '*.py' ':!*.lock'", "--",
            "HEAD~1 HEAD --word-diff", "--diff-filter=AM --name-status", "a b",
        ),
    ),
    # It takes apart what begins with - and what does not: in `-S 0 -G --output=x` the value of -S is -G.
    _diff(
        "git stash show",
        flags="u",
        long_flags="include-untracked only-untracked",
        values="",
        examples=("-p stash@{1}", "-Sneedle -p"),
    ),
    _diff(
        "git diff-tree",
        flags="rtmcv",
        long_flags="cc root no-commit-id always merge-base pretty= format== oneline no-notes",
        examples=("-r --no-commit-id --name-only HEAD", "--pretty=oneline HEAD"),
    ),
    _diff("git diff-index", flags="mrt", long_flags="cached merge-base", examples=("--cached HEAD", "--quiet HEAD --")),
    _diff("git diff-files", flags="qcr0123", long_flags="base ours theirs cc", examples=("-q",)),
)  # fmt: skip
_WALKS = (
    ProgramSpec(
        name="git rev-list",
        flags=WALK_FLAGS,
        values="n",
        long_flags=f"""{WALK_LONG} count objects objects-edge header timestamp quiet use-bitmap-index disk-usage=
            abbrev= no-abbrev commit-header no-commit-header bisect bisect-all object-names no-object-names""",
        long_values=f"{WALK_VALUES} committer",
        numbers=True,
        operands="text",
        extra_paths=list_content_paths,
        reject=refuse_format,
        match=("git rev-list --count HEAD", "git rev-list --all -n 5", "git rev-list --left-right --count a...b"),
        no_match=("git rev-list --format=%G? HEAD", "git rev-list --stdin", "git rev-list --filter=blob:none HEAD"),
    ),
    ProgramSpec(
        name="git shortlog",
        flags="snecEFPi",
        attached="w",
        long_flags=f"{WALK_LONG} summary numbered email committer group==",
        long_values=WALK_VALUES,
        operands="text",
        extra_paths=list_content_paths,
        reject=refuse_format,
        match=(
            "git shortlog -sn", "git shortlog -sne HEAD", "git shortlog --since=2.weeks -s",
            "git shortlog -n -s HEAD",
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
HISTORY: tuple[ProgramSpec, ...] = (*_LOGS, _REFLOG, *_DIFFS, *_WALKS)
