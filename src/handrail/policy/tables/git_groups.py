"""git beyond reading: what changes the repository, and what reaches another machine."""

from handrail.policy.tables.form import ProgramClass

_WRITING = """
    add am apply bisect branch checkout cherry-pick clean commit merge mv notes rebase reset restore revert
    rm sparse-checkout stash switch tag worktree gc prune repack pack-refs reflog rerere replace update-index update-ref
    write-tree commit-tree read-tree symbolic-ref format-patch archive bundle fsck hash-object
    checkout-index merge-file merge-tree stage range-diff
"""
_STEERING = "config init remote maintenance filter-branch citool gui mergetool difftool"
_REMOTE = """
    push fetch pull clone ls-remote fetch-pack send-pack send-email submodule request-pull lfs svn p4 daemon
    http-fetch http-push imap-send credential subtree
"""

GIT_GROUPS: tuple[ProgramClass, ...] = (
    ProgramClass(
        rule="git.write",
        reason="changes the repository and may run its hooks",
        grantable=True,
        programs=frozenset(f"git {sub}" for sub in _WRITING.split()),
    ),
    ProgramClass(
        rule="git.write",
        reason="changes what steers git, or runs what it is told to",
        programs=frozenset(f"git {sub}" for sub in _STEERING.split()),
    ),
    ProgramClass(
        rule="git.network",
        reason="reaches another repository",
        effect="network",
        programs=frozenset(f"git {sub}" for sub in _REMOTE.split()) | {"git remote show", "git remote update"},
    ),
)
