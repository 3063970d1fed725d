"""The read-only sub-commands of git that describe the repository: branch, tag, remote, rev-parse, config."""

from handrail.policy.programs.git_history import refuse_fields
from handrail.policy.programs.git_paths import list_named_paths
from handrail.policy.programs.spec import ParsedArgs, ProgramSpec

_LIST_OPTIONS = frozenset(["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"])


def _refuse_creation(parsed: ParsedArgs, lists: frozenset[str]) -> str | None:
    """An operand is a pattern in a list. Otherwise it names a new branch or tag."""
    if parsed.operands and not parsed.has_option(*lists):
        return f"{parsed.operands[0]} would be created"
    if any(operand.startswith("-") for operand in parsed.operands):
        return "an operand that begins with - may be an option"
    return refuse_fields(parsed)


_LIST_FLAGS = "contains= no-contains= merged= no-merged= points-at="
_CONFIG_READ_OPTIONS = frozenset(["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"])


def _refuse_config_change(parsed: ParsedArgs) -> str | None:
    """`git config NAME` shows a value, `git config NAME VALUE` sets one, `git config edit` opens an editor.

    Behind a name, git takes an option for a value.
    """
    if parsed.mixed:
        return "git config sets the value after a name"
    if parsed.has_option(*_CONFIG_READ_OPTIONS):
        return None
    shows = len(parsed.operands) == 1 and "." in parsed.operands[0]
    return None if shows else "git config sets a value unless an option reads one"


_CONFIG_OPTIONS = {
    "flags": "z",
    "long_flags": """global system local worktree null name-only show-origin show-scope includes no-includes bool int
        bool-or-int bool-or-str path expiry-date no-type""",
    "long_values": "type default",
}


REFERENCES: tuple[ProgramSpec, ...] = (
    ProgramSpec(
        name="git branch",
        flags="arvlqi",
        long_flags=f"""{_LIST_FLAGS} all remotes list verbose show-current ignore-case column= no-column color= no-color
            abbrev= no-abbrev quiet omit-empty""",
        long_values="sort format",
        operands="text",
        # Before git 2.19, `branch -l x` creates a branch.
        reject=lambda parsed: _refuse_creation(parsed, _LIST_OPTIONS),
        match=(
            "git branch", "git branch -a", "git branch -vv", "git branch -r", "git branch --show-current",
            "git branch --list 'fix/*'", "git branch --contains abc123", "git branch --merged main",
            "git branch -a --sort=x", "git branch --format='%(refname:short)'", "git branch --points-at HEAD",
            "git branch --no-merged",
        ),
        no_match=(
            "git branch new", "git branch -v new", "git branch -l new", "git branch -d x", "git branch -D x",
            "git branch -m a b", "git branch -M b", "git branch -c a b", "git branch -C a b", "git branch -f x HEAD",
            "git branch -u origin/x", "git branch --set-upstream-to=x", "git branch --unset-upstream",
            "git branch --edit-description", "git branch --track x", "git branch --sort --list x",
            "git branch --delete x", "git branch --format='%(signature)'", "git branch --contains -- -D x",
        ),
    ),
    ProgramSpec(
        name="git tag",
        flags="li",
        attached="n",
        long_flags=f"{_LIST_FLAGS} list ignore-case column= no-column color= omit-empty",
        long_values="sort format",
        operands="text",
        reject=lambda parsed: _refuse_creation(parsed, _LIST_OPTIONS | {"-l"}),
        match=(
            "git tag", "git tag -l", "git tag -l 'v1.*'", "git tag --list 'v1.*'", "git tag -n3",
            "git tag --contains HEAD", "git tag --sort=-creatordate", "git tag --points-at HEAD", "git tag --merged",
        ),
        no_match=(
            "git tag v1", "git tag -a v1", "git tag -d v1", "git tag -f v1", "git tag -s v1", "git tag -v v1",
            "git tag -m x v1", "git tag -F file v1", "git tag --format='%(signature:grade)'",
            "git tag --sort=signature",
        ),
    ),
    ProgramSpec(
        name="git for-each-ref",
        flags="spqi",
        long_flags=f"{_LIST_FLAGS} shell perl python tcl ignore-case color= omit-empty include-root-refs",
        long_values="sort format count exclude",
        operands="text",
        reject=refuse_fields,
        match=(
            "git for-each-ref", "git for-each-ref --sort=-committerdate --count=5 refs/heads/",
            "git for-each-ref --format='%(refname) %(objectname:short)' refs/tags",
        ),
        no_match=("git for-each-ref --format='%(signature:key)'", "git for-each-ref --format='%(describe)'"),
    ),
    ProgramSpec(
        name="git show-ref",
        flags="qds",
        long_flags="head heads branches tags dereference hash= verify exists quiet abbrev=",
        operands="text",
        match=("git show-ref", "git show-ref --heads --tags", "git show-ref --verify -q refs/heads/main"),
        no_match=("git show-ref --exclude-existing",),
    ),
    ProgramSpec(
        name="git symbolic-ref",
        flags="q",
        long_flags="quiet short recurse no-recurse",
        operands="text",
        most=1,
        match=("git symbolic-ref HEAD", "git symbolic-ref --short HEAD", "git symbolic-ref refs/remotes/origin/HEAD"),
        no_match=("git symbolic-ref HEAD refs/heads/x", "git symbolic-ref -d HEAD", "git symbolic-ref -m x HEAD y"),
    ),
    ProgramSpec(
        name="git remote",
        flags="v",
        long_flags="verbose",
        operands=None,
        match=("git remote", "git remote -v"),
        no_match=(
            "git remote show origin", "git remote add x y", "git remote remove x", "git remote update",
            "git remote set-url origin x", "git remote prune origin", "git remote rename a b",
        ),
    ),
    ProgramSpec(
        name="git remote get-url",
        long_flags="all push",
        operands="text",
        most=1,
        match=("git remote get-url origin", "git remote get-url --all origin"),
        no_match=("git remote get-url --add origin",),
    ),
    ProgramSpec(
        name="git describe",
        long_flags="all tags contains abbrev= candidates== exact-match debug long always first-parent",
        long_values="match exclude",
        operands="text",
        match=("git describe", "git describe --tags --always", "git describe --tags --abbrev=0 HEAD"),
        no_match=("git describe --broken", "git describe --dirty"),  # both rewrite the index
    ),
    ProgramSpec(
        name="git name-rev",
        long_flags="tags name-only all always undefined no-undefined",
        long_values="refs exclude",
        operands="text",
        match=("git name-rev HEAD", "git name-rev --name-only --refs='refs/tags/*' HEAD"),
        no_match=("git name-rev --stdin", "git name-rev --annotate-stdin"),
    ),
    ProgramSpec(
        name="git merge-base",
        flags="a",
        long_flags="all octopus independent is-ancestor fork-point",
        operands="text",
        match=("git merge-base main HEAD", "git merge-base --is-ancestor a b"),
        no_match=("git merge-base --output=x a b",),
    ),
    ProgramSpec(
        name="git rev-parse",
        flags="q",
        long_flags="""verify quiet short= abbrev-ref= symbolic symbolic-full-name all branches= tags= remotes= glob==
            exclude== disambiguate== git-dir absolute-git-dir git-common-dir show-toplevel show-prefix show-cdup
            is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository local-env-vars path-format==
            show-object-format= show-ref-format revs-only no-revs flags no-flags sq not since== until==""",
        long_values="default git-path",
        operands="text",
        extra_paths=list_named_paths,
        match=(
            "git rev-parse HEAD", "git rev-parse --abbrev-ref HEAD", "git rev-parse --show-toplevel",
            "git rev-parse --short HEAD~2", "git rev-parse --is-inside-work-tree", "git rev-parse --git-path hooks",
            "git rev-parse --verify -q main", "git rev-parse --abbrev-ref --symbolic-full-name @{u}",
        ),
        no_match=("git rev-parse --parseopt", "git rev-parse --exec-path"),
    ),
    ProgramSpec(
        name="git config",
        flags=_CONFIG_OPTIONS["flags"] + "l",
        long_flags=f"{_CONFIG_OPTIONS['long_flags']} get get-all get-regexp get-urlmatch list",
        long_values=_CONFIG_OPTIONS["long_values"],
        paths={"-f": "read", "--file": "read"},
        operands="text",
        most=2,
        reject=_refuse_config_change,
        match=(
            "git config --get user.name", "git config --list", "git config -l --show-origin", "git config user.email",
            "git config --get-regexp '^remote'", "git config --global --get core.editor", "git config --get-all a.b",
            "git config -f .gitmodules --list", "git config --get --type=bool core.bare",
        ),
        no_match=(
            "git config user.name me", "git config --add a.b c", "git config --unset a.b", "git config -e",
            "git config edit", "git config --edit", "git config --replace-all a.b c",
            "git config --global user.name me", "git config set a.b c", "git config --rename-section a b",
            "git config --remove-section a", "git config --list --unset a.b", "git config", "git config a.b --get c.d",
        ),
    ),
    ProgramSpec(
        name="git config get",
        flags=_CONFIG_OPTIONS["flags"],
        long_flags=f"{_CONFIG_OPTIONS['long_flags']} all show-names no-show-names regexp fixed-value",
        long_values=f"{_CONFIG_OPTIONS['long_values']} value url",
        paths={"-f": "read", "--file": "read"},
        operands="text",
        most=1,
        match=("git config get user.name", "git config get --all --show-origin remote.origin.fetch"),
        no_match=("git config get a.b c", "git config get -e"),
    ),
    ProgramSpec(
        name="git config list",
        flags=_CONFIG_OPTIONS["flags"],
        long_flags=_CONFIG_OPTIONS["long_flags"],
        paths={"-f": "read", "--file": "read"},
        operands=None,
        match=("git config list", "git config list --global --show-origin"),
        no_match=("git config list x",),
    ),
)  # fmt: skip
