"""The end of the process."""

import atexit
import os
import sys


def exit_fast(code: int) -> int:
    """Ends the process with an exit code, without Python taking apart all that was imported: nobody uses it any more,
    and that takes 5 of the 70 ms of `handrail call`.

    Where other threads are at work, or somebody measures or traces this one, the code is returned: the end is Python's.
    """
    if _others_are_at_work() or sys.getprofile() or sys.gettrace() or sys.flags.dev_mode:
        return code
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  there is no other way to run them
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]  closed by whoever started us
                stream.flush()
    except (OSError, ValueError):
        return code  # Python has its own word for that
    os._exit(code)


def _others_are_at_work() -> bool:
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1
