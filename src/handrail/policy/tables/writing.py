"""Programs that write or delete just what their operands name."""

from handrail.policy.commands.placing import list_dd_paths, refuse_blocks
from handrail.policy.tables.copying import COPYING
from handrail.policy.tables.form import ProgramSpec

_DELETING = (
    ProgramSpec(
        name="rm",
        flags="rRfiIdv",
        long_flags="recursive force interactive= one-file-system preserve-root= verbose dir",
        operands="delete",
        effect="delete",
        match=("rm a.txt", "rm -rf build", "rm -f -- -odd", "rm -r --verbose a b"),
        no_match=("rm --no-preserve-root -rf /", "rm --recurs x"),
    ),
    ProgramSpec(
        name="rmdir",
        flags="pv",
        long_flags="parents verbose ignore-fail-on-non-empty",
        operands="delete",
        effect="delete",
        match=("rmdir build", "rmdir -p a/b"),
        no_match=("rmdir --what x",),
    ),
    ProgramSpec(
        name="unlink", operands="delete", effect="delete", most=1, match=("unlink a",), no_match=("unlink a b",)
    ),
)
_CHANGING = (
    ProgramSpec(
        name="mkdir",
        flags="pv",
        values="m",
        long_flags="parents verbose",
        long_values="mode",
        operands="write",
        effect="write",
        match=("mkdir a", "mkdir -p a/b/c", "mkdir -m 700 a"),
        no_match=("mkdir --context=x a",),
    ),
    ProgramSpec(
        name="touch",
        flags="acmh",
        values="dt",
        long_flags="no-create no-dereference",
        long_values="date time",
        paths={"-r": "read", "--reference": "read"},
        operands="write",
        effect="write",
        match=("touch a", "touch -c a b", "touch -d yesterday a", "touch -r a b"),
        no_match=("touch --what a",),
    ),
    ProgramSpec(
        name="tee",
        flags="aip",
        long_flags="append ignore-interrupts output-error=",
        operands="write",
        effect="write",
        match=("tee log", "tee -a log", "tee"),
        no_match=("tee --what a",),
    ),
    ProgramSpec(
        name="truncate",
        flags="co",
        values="s",
        long_flags="no-create io-blocks",
        long_values="size",
        paths={"-r": "read", "--reference": "read"},
        operands="write",
        effect="write",
        grantable=False,
        match=("truncate -s 0 log", "truncate --size=+1K a"),
        no_match=("truncate --what a",),
    ),
    ProgramSpec(
        name="chmod",
        flags="cfvR",
        long_flags="changes silent quiet verbose recursive preserve-root",
        paths={"--reference": "read"},
        operands="write",
        first="text",
        unless_options=frozenset(["--reference"]),
        effect="write",
        match=("chmod +x run.sh", "chmod -R u+w build", "chmod 644 a b", "chmod --reference=a b"),
        no_match=("chmod --no-preserve-root 777 a", "chmod -x a"),
    ),
    *(
        ProgramSpec(
            name=name,
            flags="cfvhRHLP",
            long_flags="changes silent quiet verbose dereference no-dereference recursive preserve-root",
            long_values="from",
            paths={"--reference": "read"},
            operands="write",
            first="text",
            unless_options=frozenset(["--reference"]),
            effect="write",
            match=(f"{name} me a", f"{name} -R me a b", f"{name} --reference=a b"),
            no_match=(f"{name} --no-preserve-root me a",),
        )
        for name in ("chown", "chgrp")
    ),
    ProgramSpec(
        name="dd",
        operands="text",
        reject=refuse_blocks,
        extra_paths=list_dd_paths,
        effect="write",
        match=("dd if=a of=b bs=1M count=4", "dd of=b status=none", "dd if=/dev/zero of=img bs=1M count=1"),
        no_match=("dd if=a what=b", "dd --what", "dd a b", "dd if=*"),
    ),
)
TABLES: tuple[ProgramSpec, ...] = (*_DELETING, *COPYING, *_CHANGING)
