"""Programs that put files somewhere else: mv, cp, ln, install and rsync between folders of this machine."""

from handrail.policy.commands.placing import (
    list_copy_destinations,
    list_install_folders,
    list_rsync_deletions,
    refuse_distant_link,
    refuse_remote,
)
from handrail.policy.tables.form import ProgramSpec

_TARGET = "target-directory"
_UNLESS_TARGET = frozenset(["-t", f"--{_TARGET}"])
_BACKUP = "backup="
COPYING: tuple[ProgramSpec, ...] = (
    ProgramSpec(
        name="mv",
        flags="fnivuTbZ",
        values="S",
        long_flags=f"force no-clobber interactive verbose update= no-target-directory strip-trailing-slashes {_BACKUP}",
        long_values="suffix",
        paths={"-t": "write", f"--{_TARGET}": "write"},
        operands="delete",
        last="write",
        unless_options=_UNLESS_TARGET,
        extra_paths=list_copy_destinations,
        effect="write",
        match=("mv a b", "mv -f a b dir/", "mv -t dir a b", "mv --target-directory=dir a"),
        no_match=("mv --context a b", "mv --exchange a b"),
    ),
    ProgramSpec(
        name="cp",
        flags="abdfHilLnPprRsTuvx",
        values="S",
        long_flags=f"""archive attributes-only {_BACKUP} copy-contents force interactive link dereference
            no-dereference no-clobber preserve= no-preserve== parents recursive reflink= remove-destination sparse==
            strip-trailing-slashes symbolic-link no-target-directory update= verbose one-file-system""",
        long_values="suffix",
        paths={"-t": "write", f"--{_TARGET}": "write"},
        last="write",
        unless_options=_UNLESS_TARGET,
        extra_paths=list_copy_destinations,
        effect="write",
        match=("cp a b", "cp -r src dst", "cp -a src/. dst/", "cp -t dir a b", "cp -pv a b dir"),
        no_match=("cp --context=x a b", "cp -Z a b"),
    ),
    ProgramSpec(
        name="ln",
        flags="sfnivbrLPTd",
        values="S",
        long_flags=f"""symbolic force no-dereference interactive verbose relative logical physical no-target-directory
            {_BACKUP}""",
        long_values="suffix",
        paths={"-t": "write", f"--{_TARGET}": "write"},
        last="write",
        unless_options=_UNLESS_TARGET,
        reject=refuse_distant_link,
        extra_paths=list_copy_destinations,
        effect="write",
        match=("ln -s a b", "ln -sf target name", "ln a b", "ln -s src/a", "ln -sr ../a b"),
        no_match=("ln -s ../a bin/a", "ln --directory a b"),
    ),
    ProgramSpec(
        name="install",
        flags="bcCdDpTv",
        values="gmoS",
        long_flags=f"{_BACKUP} compare directory preserve-timestamps no-target-directory verbose",
        long_values="group mode owner suffix",
        paths={"-t": "write", f"--{_TARGET}": "write"},
        last="write",
        unless_options=_UNLESS_TARGET,
        extra_paths=list_install_folders,
        effect="write",
        grantable=False,
        match=("install -m 755 a bin/a", "install -d build/bin", "install -D a b/c/d", "install -t dir a b"),
        no_match=("install -s a b", "install --strip-program=x a b", "install --strip a b"),
    ),
    ProgramSpec(
        name="rsync",
        flags="vqcarRubldLkKHpEAXogDtOJSnWxIzhiPm",
        long_flags="""verbose quiet checksum archive recursive relative no-relative backup update links copy-links
            keep-dirlinks copy-dirlinks hard-links perms executability acls xattrs owner group devices specials times
            omit-dir-times omit-link-times sparse dry-run whole-file no-whole-file one-file-system existing
            ignore-existing ignore-times size-only compress human-readable itemize-changes partial progress
            prune-empty-dirs stats delete delete-before delete-during delete-delay delete-after delete-excluded force
            remove-source-files inplace append append-verify no-owner no-group no-perms no-times numeric-ids
            list-only safe-links copy-unsafe-links dirs cvs-exclude no-motd mkpath""",
        long_values="exclude include max-size min-size max-delete chmod suffix info out-format",
        paths={
            "--exclude-from": "read", "--include-from": "read", "--files-from": "read", "--compare-dest": "read",
            "--copy-dest": "read", "--link-dest": "read", "--backup-dir": "write", "--partial-dir": "write",
            "--temp-dir": "write", "-T": "write",
        },
        last="write",
        reject=refuse_remote,
        extra_paths=list_rsync_deletions,
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
)  # fmt: skip
