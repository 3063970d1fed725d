"""The read-only sub-commands of git.

Global options before the sub-command (-c, -C, --git-dir) are never proven. The tables refuse words that would start a
program or write. `sandbox/environment.py` keeps a repository's configuration from starting programs.
"""

from handrail.policy.programs.git_history import HISTORY
from handrail.policy.programs.git_paths import list_content_paths, list_named_paths
from handrail.policy.programs.git_refs import REFERENCES
from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec


def _list_grep_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """The first operand of `git grep` is its pattern, unless an option gives one."""
    if not parsed.operands or parsed.has_option("-e", "-f"):
        return list_content_paths(parsed)
    ended = None if parsed.ended is None else max(0, parsed.ended - 1)
    globs = tuple(place - 1 for place in parsed.globs)
    return list_content_paths(ParsedArgs(parsed.options, parsed.operands[1:], globs, ended))


def _refuse_cleaning(parsed: ParsedArgs) -> str | None:
    return None if parsed.has_option("-n", "--dry-run") else "git clean deletes files without -n"


TABLES: tuple[ProgramSpec, ...] = (
    *HISTORY,
    *REFERENCES,
    ProgramSpec(
        name="git status",
        flags="sbvz",
        attached="uM",
        long_flags="""short branch porcelain= long verbose untracked-files= ignored= null ignore-submodules= show-stash
            no-show-stash ahead-behind no-ahead-behind renames no-renames find-renames= column= no-column""",
        operands="text",
        extra_paths=list_named_paths,
        match=(
            "git status", "git status -s", "git status -sb", "git status --porcelain=v2 --branch", "git status -uno",
            "git status --short -- src", "git status -s .", "git status --ignored",
        ),
        no_match=("git status --output=x", "git status --pathspec-from-file=x", "git status --porc"),
    ),
    ProgramSpec(
        name="git ls-files",
        flags="cdmosiukztvf",
        values="x",
        long_flags="""cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol
            deduplicate exclude-standard error-unmatch full-name abbrev= debug sparse resolve-undo""",
        long_values="exclude with-tree format",
        paths={"-X": "read", "--exclude-from": "read"},
        operands="text",
        extra_paths=list_named_paths,
        match=(
            "git ls-files", "git ls-files -m", "git ls-files --others --exclude-standard", "git ls-files '*.py'",
            "git ls-files -s src", "git ls-files --error-unmatch .env", "git ls-files -z", "git ls-files -- src tests",
        ),
        no_match=("git ls-files --recurse-submodules", "git ls-files --exclude-per-directory=x"),
    ),
    ProgramSpec(
        name="git ls-tree",
        flags="drtlz",
        long_flags="long name-only name-status object-only full-name full-tree abbrev=",
        long_values="format",
        operands="text",
        extra_paths=list_named_paths,
        match=("git ls-tree HEAD", "git ls-tree -r --name-only HEAD src", "git ls-tree -l HEAD:src"),
        no_match=("git ls-tree --output=x HEAD",),
    ),
    ProgramSpec(
        name="git cat-file",
        flags="tspe",
        long_flags="allow-unknown-type mailmap use-mailmap no-mailmap",
        operands="text",
        extra_paths=list_content_paths,
        most=2,
        match=(
            "git cat-file -p HEAD", "git cat-file -t abc123", "git cat-file blob HEAD:src/a.py", "git cat-file -e HEAD",
        ),
        no_match=(
            "git cat-file --batch", "git cat-file --batch-check", "git cat-file --textconv HEAD:a",
            "git cat-file --filters HEAD:a", "git cat-file --batch-command",
            "git cat-file --batch-all-objects --batch-check",
        ),
    ),
    ProgramSpec(
        name="git grep",
        flags="nilLcwvhHoqzaEGFPIpWr",
        values="eABCm",
        long_flags="""cached untracked exclude-standard no-exclude-standard text ignore-case word-regexp invert-match
            full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches
            name-only files-without-match null only-matching count color= no-color break heading show-function
            function-context all-match quiet and or not recursive no-recursive no-textconv""",
        long_values="max-depth after-context before-context context threads max-count",
        numbers=True,
        paths={"-f": "read"},
        operands="text",
        extra_paths=_list_grep_paths,
        grantable=False,
        match=(
            "git grep -n needle", "git grep -i needle -- src", "git grep -e a --and -e b",
            "git grep -l needle HEAD -- '*.py'", "git grep -A3 -B 2 -w needle", "git grep -c --untracked needle",
        ),
        no_match=(
            "git grep -O needle", "git grep --open-files-in-pager=vim needle", "git grep -Ovim needle",
            "git grep --no-index needle", "git grep --textconv needle", "git grep --recurse-submodules needle",
            "git grep --open needle",
        ),
    ),
    ProgramSpec(
        name="git check-ignore",
        flags="qvzn",
        long_flags="quiet verbose non-matching no-index",
        operands="text",
        extra_paths=list_named_paths,
        match=("git check-ignore -v build", "git check-ignore .env"),
        no_match=("git check-ignore --stdin",),
    ),
    ProgramSpec(
        name="git check-attr",
        flags="az",
        long_flags="all cached",
        operands="text",
        extra_paths=list_named_paths,
        match=("git check-attr -a src/a.py", "git check-attr text -- src/a.py"),
        no_match=("git check-attr --stdin -a", "git check-attr --source=HEAD -a x"),
    ),
    ProgramSpec(
        name="git count-objects",
        flags="vH",
        long_flags="verbose human-readable",
        operands=None,
        match=("git count-objects -vH",),
        no_match=("git count-objects x",),
    ),
    ProgramSpec(
        name="git fsck",
        flags="v",
        long_flags="""unreachable dangling no-dangling root tags cache no-reflogs full no-full connectivity-only strict
            verbose progress no-progress name-objects""",
        operands="text",
        match=("git fsck", "git fsck --full --strict", "git fsck --no-dangling"),
        no_match=("git fsck --lost-found", "git fsck --lost", "git fsck --full --lost-found"),
    ),
    ProgramSpec(
        name="git clean",
        flags="ndqxX",
        values="e",
        long_flags="dry-run quiet",
        long_values="exclude",
        operands="text",
        extra_paths=list_named_paths,
        reject=_refuse_cleaning,
        grantable=False,
        match=("git clean -n", "git clean -nd", "git clean -xdn src", "git clean --dry-run -d"),
        no_match=("git clean -d", "git clean -fd", "git clean -nf", "git clean -i", "git clean -n -f", "git clean"),
    ),
    ProgramSpec(
        name="git worktree list",
        flags="vz",
        long_flags="porcelain verbose",
        operands=None,
        match=("git worktree list", "git worktree list --porcelain"),
        no_match=("git worktree list x",),
    ),
    ProgramSpec(
        name="git version",
        long_flags="build-options",
        operands=None,
        match=("git version",),
        no_match=("git version x",),
    ),
    ProgramSpec(
        name="git --version", operands=None, match=("git --version",), no_match=("git --version --exec-path=x",)
    ),
)  # fmt: skip
