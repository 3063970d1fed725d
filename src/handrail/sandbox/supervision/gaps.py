"""What tiers 1 and 0 do not give: said in every result, since a command that is less confined should look it."""

from handrail.kernel.landlock import describe_missing_rights, read_abi_version

TIER_1 = (
    "whether a file outside the roots exists, and its size, owner, times and extended attributes, can be seen",
    "that files outside the roots change can be watched",
    "outside the roots a command that may write can change the mode and the times of files of this user",
    "names and command lines of the machine's other processes can be seen; their variables and memory cannot",
    "the machine's mounts, network addresses and connections can be seen",
    "names of hidden files and folders can be seen; what is in the files cannot",
    "in a folder that holds something hidden or sealed nothing can be made, renamed or removed",
    "sockets cannot be opened, not even between the command's own processes",
    "/tmp, /dev/shm and terminals cannot be used: TMPDIR and HOME lead to a folder of the command's own",  # noqa: S108
    "what is written to that folder has no limit but each file's size",
    "a command that is another process every millisecond may outlive its call on a busy machine",
)
TIER_0 = (
    "nothing is confined: the command can do what this user can, the network included",
    "it can kill its supervisor, and what it has started then lives on",
)


def list_gaps(tier: int) -> tuple[str, ...]:
    """What the tier does not give on this kernel, a clause each."""
    return (*TIER_1, *describe_missing_rights(read_abi_version())) if tier else TIER_0
