"""Has a file system put the folders in a folder far from one another, where it can be told to.

ext4 makes a file beside its folder, and looks there for a number that no file has. One that was given back within the
last minutes it passes over, after a look at each of them: where a thousand files were removed, every new one takes
half a millisecond. In a folder that lies elsewhere it takes a hundredth of that.
"""

import contextlib
import struct
import sys

_SIZE = struct.calcsize("l")
_GET, _SET = 0x80006601 | _SIZE << 16, 0x40006602 | _SIZE << 16
"""FS_IOC_GETFLAGS and FS_IOC_SETFLAGS, which name the size of a long."""
_TOP = 0x00020000
"""FS_TOPDIR_FL: what is in it has nothing to do with one another."""


def spread(folder: int) -> None:
    """Asks for it; nothing where the system or the file system knows no such thing."""
    if sys.platform != "linux":
        return
    import fcntl  # noqa: PLC0415  only there is it known what to ask for

    with contextlib.suppress(OSError):
        flags = _flags(fcntl.ioctl(folder, _GET, bytes(_SIZE)))
        if not flags & _TOP:
            fcntl.ioctl(folder, _SET, struct.pack("i", flags | _TOP) + bytes(_SIZE - 4))


def _flags(answer: bytes) -> int:
    """The kernel writes an int, whatever the number of the question says."""
    return int(struct.unpack_from("i", answer)[0])
