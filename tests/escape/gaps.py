"""What a tier does not contain, and why: exactly this, no more and no less."""

from typing import NamedTuple


class Gap(NamedTuple):
    """One reason, and the tier that it is a reason at."""

    tier: int
    why: str


GAPS: dict[str, Gap] = {
    "attributes": Gap(1, "Landlock has no right for the mode and the times of a file."),
    "names": Gap(1, "Landlock hides no names: whether a file is there, its size and its times can be seen."),
    "processes": Gap(1, "Without a process namespace it is seen which processes there are, and with what arguments."),
    "capabilities": Gap(
        1, "Without a user namespace root keeps capabilities; what they are for is refused call by call."
    ),
    "channels": Gap(2, "A named pipe in a folder that is shown read-only, outside of the roots, can be written to."),
}
