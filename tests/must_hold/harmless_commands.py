"""Seeded shell commands that mostly leave no change: reads, work in /tmp, and changes that they take back."""

import random

_FILES = (
    "README.md",
    "notes.txt",
    "words.txt",
    "src/main.py",
    "docs/guide.md",
    "table.csv",
    "tools/run.sh",
    "Makefile",
)
_FOLDERS = (".", "src", "docs", "empty", "src/util", ".git", ".git/refs")
_READS = (
    "cat {file}", "head -n 3 {file}", "wc -c <{file}", "grep -c o {file} || true", "stat -c %s {file}",
    "ls -la {folder}",
    "find {folder} -type f | wc -l", "awk '{{print NR}}' {file} | tail -1", "sed -n 1p {file}", "sort {file} | uniq -c",
    "python3 -c \"print(len(open('{file}').read()))\"", "perl -ne 'print if /a/' {file}", "sha256sum {file}",
    "tar cf - {folder} 2>/dev/null | wc -c", "diff {file} {file}", "while read -r line; do :; done <{file}",
    "x=$(cat {file}); echo ${{#x}}", "env | wc -l", "test -e {file} && echo there", "printf '%s\\n' {folder}/*",
)  # fmt: skip
_TEMPORARY = (
    "cp {file} /tmp/copy && rm /tmp/copy", "echo {number} >/tmp/{name}", "mktemp -d", "echo {number} >/dev/null",
    "cat {file} >/dev/null 2>&1", "cd /tmp && mkdir {name} && cd - >/dev/null", "tar cf /tmp/{name}.tar {folder}",
    "cat <<'EOF'\n{number}\nEOF", "cat <<EOF >/tmp/{name}\n$((1 + {number}))\nEOF", "echo {number} >/dev/shm/{name}",
    "python3 - <<'EOF'\nopen('/tmp/{name}', 'w').write('{number}')\nEOF",
)  # fmt: skip
_TAKEN_BACK = (
    "echo {number} >{name} && rm {name}", "mkdir {name} && rmdir {name}", "mkdir -p {name}/a/b && rm -r {name}",
    "touch {folder}/{name} && rm {folder}/{name}", "mkfifo {name} && rm {name}", "ln -s {file} {name} && rm {name}",
    "ln {file} {name} && rm {name}", "mv {file} {name} && mv {name} {file}", "cp -p {file} {name}; rm -f {name}",
    "chmod +x {file}; chmod --reference=/tmp/mode {file} 2>/dev/null || chmod 644 {file}",
    "m=$(stat -c %a {file}); chmod 600 {file}; chmod $m {file}",
    "m=$(stat -c %a {folder}); chmod 700 {folder}; chmod $m {folder}",
    "cp {file} /tmp/kept && echo {number} >>{file} && cat /tmp/kept >{file}",
    "cp -p {file} /tmp/k; rm {file}; cp -p /tmp/k {file}",
    "mv src {name} && mv {name} src", "touch {file}", "touch -d @{number} {file}", "touch -a {folder}",
    "truncate -s +0 {file}",
    "for n in 1 2 3; do echo $n >{name}$n; done; rm -f {name}?", "(umask 077; echo x >{name}); rm {name}",
    "python3 -c \"import os; open('{name}', 'w').close(); os.unlink('{name}')\"", "sed -i '' {file} || true",
    "python3 -c \"import os; os.utime('{folder}', (1, {number}))\"",
    "setfattr -n user.a -v b {file} && setfattr -x user.a {file}",
    "dd if={file} of={file} conv=notrunc 2>/dev/null", "echo -n >>{file}", "python3 -c \"open('{file}', 'a').close()\"",
    "tar cf /tmp/t.tar {file} && tar xf /tmp/t.tar", "exec 3<>{file}; exec 3>&-",
    "mv {file} /tmp/m && mv /tmp/m {file}",
)  # fmt: skip
_GIT = (
    "git status --short", "git log --oneline | head -3", "git diff --stat", "git add -n .", "git stash list",
    "git update-index -q --refresh; true", "git branch x{number} && git branch -D x{number}", "git fsck 2>&1 | tail -1",
    "git tag t{number} && git tag -d t{number}", "git rev-parse HEAD", "git gc --auto", "git worktree list",
    "git diff HEAD -- {file} | wc -l", "git checkout -q HEAD -- {file}",
    "git ls-files | while read -r f; do test -e $f; done",
    "git config --get user.name", "git commit --dry-run || true", "git stash -q; git stash pop -q", "git add {file}",
)  # fmt: skip
_AROUND = (
    "{0}", "{0}", "{0}; {1}", "{0} && {1}", "({0})", "{{ {0}\n}}", "for i in 1 2; do\n{0}\ndone",
    "if true; then\n{0}\nfi",
    "{0}\n{1}", "bash -c 'true'; {0}", "{0} | cat", "set -e\n{0}\n{1}", "sleep 0 & {0}; wait", "trap 'true' EXIT; {0}",
)  # fmt: skip
_KINDS = (_READS, _READS, _TEMPORARY, _TAKEN_BACK, _TAKEN_BACK, _TAKEN_BACK, _GIT)


def make_command(draw: random.Random) -> str:
    """One command. It ends within moments."""
    inner = [_fill(draw, draw.choice(draw.choice(_KINDS))) for _ in range(2)]
    return draw.choice(_AROUND).format(*(text if "\nEOF" not in text else f"{text}\n" for text in inner))


def _fill(draw: random.Random, text: str) -> str:
    number = draw.randrange(1, 10_000)
    return text.format(file=draw.choice(_FILES), folder=draw.choice(_FOLDERS), name=f"made{number}", number=number)
