"""name_to_handle_at(2): what the file system itself tells a file apart by, also after it was moved."""

import ctypes
import os

_EMPTY_PATH = 0x1000
_MAX_HANDLE_BYTES = 128


class _Handle(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * _MAX_HANDLE_BYTES))


try:
    _name_to_handle_at = ctypes.CDLL(None, use_errno=True).name_to_handle_at
except AttributeError:  # not Linux
    _name_to_handle_at = None


def read_file_handle(descriptor: int) -> tuple[int, bytes] | None:
    """The handle of an open file, as its kind and its bytes; None where the file system has none."""
    if _name_to_handle_at is None:
        return None
    handle, mount = _Handle(size=_MAX_HANDLE_BYTES), ctypes.c_int()
    flags = ctypes.c_int(_EMPTY_PATH)
    if _name_to_handle_at(descriptor, os.fsencode(""), ctypes.byref(handle), ctypes.byref(mount), flags) != 0:
        return None
    return handle.kind, bytes(handle.data[: handle.size])
