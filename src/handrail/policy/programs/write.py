"""Programs that write files: rm, mv, cp, ln, rsync, dd."""

import re

from msgspec.structs import replace

from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec
from handrail.protocol.decisions import Access

_BACKUP = "backup="
_TARGET_OPTIONS = frozenset(["-t", "--target-directory"])
_BLOCK_WORDS = frozenset(
    ("if", "of", "bs", "ibs", "obs", "cbs", "count", "skip", "seek", "iseek", "oseek", "conv", "iflag", "oflag",
     "status")
)  # fmt: skip
_GLOB = re.compile(r"[*?[]")
_HOST = re.compile(r"[^/]*:")


def _list_copy_destinations(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """The copies if the destination is a folder: `cp a/handrail.toml .` writes ./handrail.toml."""
    folders = [value for name, value in parsed.options if name in _TARGET_OPTIONS and value]
    sources = parsed.operands if folders else parsed.operands[:-1]
    uses: list[PathUse] = []
    for folder in folders or parsed.operands[-1:]:
        for place, source in enumerate(sources):
            name = source.rstrip("/").rpartition("/")[2]
            if place not in parsed.globs and name not in {"", ".", ".."}:
                uses.append(PathUse(f"{folder.rstrip('/')}/{name}", "write", is_certainly_path=False))
    return tuple(uses)


def _list_install_folders(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """`install -d` makes each of its operands."""
    if not parsed.has_option("-d", "--directory"):
        return _list_copy_destinations(parsed)
    return tuple(PathUse(text, "write", place in parsed.globs) for place, text in enumerate(parsed.operands))


def _refuse_distant_link(parsed: ParsedArgs) -> str | None:
    """A symbolic link with `..` leads somewhere that depends on the folder of the link."""
    if not parsed.has_option("-s", "--symbolic") or parsed.has_option("-r", "--relative"):
        return None
    targets = parsed.operands if parsed.has_option(*_TARGET_OPTIONS) else (parsed.operands[:-1] or parsed.operands)
    distant = [target for target in targets if ".." in target.split("/") and not target.startswith("/")]
    return f"the target of {distant[0]} depends on the folder of the link" if distant else None


def _refuse_remote(parsed: ParsedArgs) -> str | None:
    """rsync reaches another machine if a colon stands before the first slash, also in a file name."""
    remote = [operand for operand in parsed.operands if _HOST.match(operand)]
    remote += [text for text in _list_globs(parsed) if _GLOB.search(text.partition("/")[0])]
    return f"{remote[0]} may be on another machine" if remote else None


def _list_rsync_deletions(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    deleted: list[str] = []
    if any(name.startswith("--delete") for name, _ in parsed.options):
        deleted += parsed.operands[-1:]
    if parsed.has_option("--remove-source-files"):
        deleted += parsed.operands[:-1]
    return tuple(PathUse(path, "delete", path in _list_globs(parsed)) for path in deleted)


def _refuse_blocks(parsed: ParsedArgs) -> str | None:
    """All operands of dd have the form `bs=1M`."""
    odd = [word for word in parsed.operands if "=" not in word or word.partition("=")[0] not in _BLOCK_WORDS]
    odd += _list_globs(parsed)
    return f"dd's {odd[0]} is not a known operand" if odd else None


def _list_dd_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    pairs = [word.partition("=") for word in parsed.operands]
    accesses: dict[str, Access] = {"if": "read", "of": "write"}
    return tuple(PathUse(path, accesses[name]) for name, _, path in pairs if name in accesses)


def _list_globs(parsed: ParsedArgs) -> list[str]:
    return [parsed.operands[place] for place in parsed.globs]


def _add_destination(spec: ProgramSpec) -> ProgramSpec:
    """Add the destination: the last operand, or the value of an option for the target directory."""
    return replace(
        spec,
        long_values=f"suffix {spec.long_values}",
        paths=dict.fromkeys(_TARGET_OPTIONS, "write"),
        last="write",
        unless_options=_TARGET_OPTIONS,
        extra_paths=spec.extra_paths or _list_copy_destinations,
        effect="write",
    )


TABLES: tuple[ProgramSpec, ...] = (
    ProgramSpec(
        name="tee /dev/null",
        operands=None,
        match=("tee /dev/null",),
        no_match=("tee /dev/null a", "tee a /dev/null", "tee /dev/null -a x"),
    ),
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
    _add_destination(ProgramSpec(
        name="mv",
        flags="fnivuTbZ",
        values="S",
        long_flags=f"force no-clobber interactive verbose update= no-target-directory strip-trailing-slashes {_BACKUP}",
        operands="delete",
        match=("mv a b", "mv -f a b dir/", "mv -t dir a b", "mv --target-directory=dir a"),
        no_match=("mv --context a b", "mv --exchange a b"),
    )),
    _add_destination(ProgramSpec(
        name="cp",
        flags="abdfHilLnPprRsTuvx",
        values="S",
        long_flags=f"""archive attributes-only {_BACKUP} copy-contents force interactive link dereference no-dereference
            no-clobber preserve= no-preserve== parents recursive reflink= remove-destination sparse==
            strip-trailing-slashes symbolic-link no-target-directory update= verbose one-file-system""",
        match=("cp a b", "cp -r src dst", "cp -a src/. dst/", "cp -t dir a b", "cp -pv a b dir"),
        no_match=("cp --context=x a b", "cp -Z a b"),
    )),
    _add_destination(ProgramSpec(
        name="ln",
        flags="sfnivbrLPTd",
        values="S",
        long_flags=f"""symbolic force no-dereference interactive verbose relative logical physical no-target-directory
            {_BACKUP}""",
        reject=_refuse_distant_link,
        match=("ln -s a b", "ln -sf target name", "ln a b", "ln -s src/a", "ln -sr ../a b"),
        no_match=("ln -s ../a bin/a", "ln --directory a b"),
    )),
    _add_destination(ProgramSpec(
        name="install",
        flags="bcCdDpTv",
        values="gmoS",
        long_flags=f"{_BACKUP} compare directory preserve-timestamps no-target-directory verbose",
        long_values="group mode owner",
        extra_paths=_list_install_folders,
        grantable=False,
        match=("install -m 755 a bin/a", "install -d build/bin", "install -D a b/c/d", "install -t dir a b"),
        no_match=("install -s a b", "install --strip-program=x a b", "install --strip a b"),
    )),
    ProgramSpec(
        name="rsync",
        flags="vqcarRubldLkKHpEAXogDtOJSnWxIzhiPm",
        long_flags="""verbose quiet checksum archive recursive relative no-relative backup update links copy-links
            keep-dirlinks copy-dirlinks hard-links perms executability acls xattrs owner group devices specials times
            omit-dir-times omit-link-times sparse dry-run whole-file no-whole-file one-file-system existing
            ignore-existing ignore-times size-only compress human-readable itemize-changes partial progress
            prune-empty-dirs stats delete delete-before delete-during delete-delay delete-after delete-excluded force
            remove-source-files inplace append append-verify no-owner no-group no-perms no-times numeric-ids list-only
            safe-links copy-unsafe-links dirs cvs-exclude no-motd mkpath""",
        long_values="exclude include max-size min-size max-delete chmod suffix info out-format",
        paths={
            "--exclude-from": "read", "--include-from": "read", "--files-from": "read", "--compare-dest": "read",
            "--copy-dest": "read", "--link-dest": "read", "--backup-dir": "write", "--partial-dir": "write",
            "--temp-dir": "write", "-T": "write",
        },
        last="write",
        reject=_refuse_remote,
        extra_paths=_list_rsync_deletions,
        effect="write",
        grantable=False,
        match=(
            "rsync -a src/ dst/", "rsync -av --delete --exclude=.git src/ dst/", "rsync -n a b", "rsync -a ./a:b dst",
            "rsync -a src/* dst", "rsync -a * dst",
        ),
        no_match=(
            "rsync -a src host:dst", "rsync -a host:src dst", "rsync rsync://host/x dst", "rsync -e ssh a b",
            "rsync --rsh=ssh a b", "rsync --rsync-path=x a b", "rsync --daemon", "rsync host::module dst",
            "rsync --filter='merge x' a b", "rsync --log-file=x a b", "rsync -aessh a b", "rsync -a user@host:x y",
            "rsync -a h* dst",
        ),
    ),
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
    ProgramSpec(
        name="chown",
        also=("chgrp",),
        flags="cfvhRHLP",
        long_flags="changes silent quiet verbose dereference no-dereference recursive preserve-root",
        long_values="from",
        paths={"--reference": "read"},
        operands="write",
        first="text",
        unless_options=frozenset(["--reference"]),
        effect="write",
        match=("chown me a", "chown -R me a b", "chown --reference=a b", "chgrp me a"),
        no_match=("chown --no-preserve-root me a", "chgrp --no-preserve-root me a"),
    ),
    ProgramSpec(
        name="dd",
        operands="text",
        reject=_refuse_blocks,
        extra_paths=_list_dd_paths,
        effect="write",
        match=("dd if=a of=b bs=1M count=4", "dd of=b status=none", "dd if=/dev/zero of=img bs=1M count=1"),
        no_match=("dd if=a what=b", "dd --what", "dd a b", "dd if=*"),
    ),
)  # fmt: skip
