"""Output of any size: the beginning and the end exactly, the rest in a file, in memory that does not grow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from process_launches import MakeLaunch, Run, supervised

HEAD = 1 << 16


def numbers(last: int) -> bytes:
    """What `seq last` prints."""
    return b"".join(b"%d\n" % number for number in range(1, last + 1))


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_at_the_limit_all_of_it_is_in_memory(run: Run, more: int) -> None:
    whole = numbers(100_000)
    limit = len(whole) + more
    ran = run(supervised("seq 100000"), limits={"output": limit})
    printed = ran.output
    if more >= 0:
        assert (printed.head, printed.tail, printed.spilled) == (whole, b"", None)
    else:
        assert printed.spilled is not None
        assert (printed.head, printed.tail) == (whole[:HEAD], whole[HEAD + 1 :])
        assert Path(printed.spilled).read_bytes() == whole
    assert (printed.total, printed.lost, ran.limits) == (len(whole), 0, ())


@pytest.mark.parametrize("output", [200_000, 500_000, 524_288, 700_001])
def test_what_is_more_is_in_a_file_from_the_beginning(run: Run, output: int) -> None:
    whole = numbers(300_000)
    ran = run(supervised("seq 300000"), limits={"output": output})
    printed = ran.output
    assert printed.spilled is not None
    assert (printed.head, printed.tail) == (whole[:HEAD], whole[HEAD - output :])
    assert (printed.total, printed.spilled_bytes, printed.lost, ran.limits) == (len(whole), len(whole), 0, ())
    assert Path(printed.spilled).read_bytes() == whole
    assert os.stat(printed.spilled).st_mode & 0o777 == 0o600


def test_what_is_more_than_the_file_may_hold_is_counted_and_named(run: Run) -> None:
    whole = numbers(300_000)
    ran = run(supervised("seq 300000"), limits={"output": 200_000, "spilled": 1_000_000})
    printed = ran.output
    assert printed.spilled is not None
    assert Path(printed.spilled).read_bytes() == whole[:1_000_000]
    assert (printed.spilled_bytes, printed.tail) == (1_000_000, whole[HEAD - 200_000 :])
    assert printed.lost == len(whole) - 1_000_000 - (200_000 - HEAD)
    assert (ran.limits, ran.warnings) == (("output",), ())


@pytest.mark.parametrize("spilled", [0, HEAD])
def test_a_file_that_would_hold_no_more_than_the_beginning_is_not_made(run: Run, spilled: int) -> None:
    ran = run(supervised("seq 300000"), limits={"output": 200_000, "spilled": spilled})
    assert (ran.output.spilled, ran.output.spilled_bytes) == (None, 0)
    assert (ran.output.lost, ran.limits) == (ran.output.total - 200_000, ("output",))


@pytest.mark.parametrize("output", [0, 1, 2, 3, 10])
def test_tiny_limits_hold(run: Run, output: int) -> None:
    ran = run(supervised("printf 0123456789abcdef"), limits={"output": output, "spilled": 0})
    size = max(2, output)
    assert (ran.output.head, ran.output.tail) == (
        b"0123456789"[: size // 2],
        b"0123456789abcdef"[size // 2 - size :],
    )


def test_each_of_two_pipes_has_a_beginning_an_end_and_a_file(run: Run) -> None:
    ran = run(supervised("seq 100000; seq 50000 >&2"), two_pipes=True, limits={"output": 200_000})
    assert ran.errors is not None
    assert ran.output.spilled is not None
    assert ran.errors.spilled is not None
    assert Path(ran.output.spilled).read_bytes() == numbers(100_000)
    assert Path(ran.errors.spilled).read_bytes() == numbers(50_000)
    assert ran.errors.tail == numbers(50_000)[HEAD - 200_000 :]


def test_without_a_folder_the_beginning_and_the_end_are_kept(run: Run, tmp_path: Path) -> None:
    ran = run(supervised("seq 300000"), limits={"output": 200_000}, spill_folder=str(tmp_path / "missing"))
    assert ran.output.tail == numbers(300_000)[HEAD - 200_000 :]
    assert (ran.output.spilled, ran.exit_code, ran.limits) == (None, 0, ())
    assert "No such file or directory" in ran.warnings[0]
    assert str(tmp_path) not in ran.warnings[0]


FULL_DISK = """
import os, sys
from process_launches import supervised
from handrail.process.run import run_launch
from handrail.sandbox.profile import ResourceLimits
ran = run_launch(
    supervised("seq 1000000"), limits=ResourceLimits(output=200_000), cancelled=lambda: False, spill_folder=sys.argv[1]
)
print(ran.ending, ran.exit_code, ran.output.tail.endswith(b"999999\\n1000000\\n"))
print(ran.output.spilled, os.listdir(sys.argv[1]))
print(ran.output.lost == ran.output.total - len(ran.output.head) - len(ran.output.tail), ran.limits, *ran.warnings)
"""


def test_a_full_disk_costs_the_file_and_nothing_else(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    own_mounts = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    mounted = f"mount -t tmpfs -o size=1M none {disk} || exit 77; exec {sys.executable} - {disk}"
    done = subprocess.run(
        [*own_mounts, "sh", "-c", mounted],
        input=FULL_DISK.encode(),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    if b"unshare failed" in done.stderr or done.returncode == 77:
        pytest.skip("no mounts of our own here")
    assert done.stdout.decode().splitlines() == [
        "exit 0 True",
        "None []",
        "True () Not all of the output could be kept: the file for it could not be written (No space left on device).",
    ]


MEMORY = """
import pathlib, re, sys
from process_launches import supervised
from handrail.process.run import run_launch
from handrail.process.output import Updates
from handrail.sandbox.profile import ResourceLimits
last = int(sys.argv[1])
ran = run_launch(
    supervised(f"seq {last}"),
    limits=ResourceLimits(seconds=600),
    cancelled=lambda: False,
    on_output=Updates(lambda update: None).feed,
    spill_folder=sys.argv[2],
)
most = re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]
expected = b"".join(b"%d\\n" % number for number in range(last - 600_000, last + 1))
print(ran.exit_code, ran.output.total, ran.output.tail == expected[-len(ran.output.tail):], len(ran.output.tail))
print(most)
"""


def test_output_without_end_needs_no_more_memory(tmp_path: Path, deep: bool) -> None:
    last = 1_100_000_000 if deep else 35_000_000
    total = sum(9 * 10**digits * (digits + 2) for digits in range(len(str(last)) - 1))
    total += (last - 10 ** (len(str(last)) - 1) + 1) * (len(str(last)) + 1)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(last), tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    said, most_kilobytes = done.stdout.decode().splitlines()
    assert total > (10**10 if deep else 3 * 10**8)
    assert said == f"0 {total} True {(4 << 20) - HEAD}"
    assert int(most_kilobytes) < 64 << 10


def test_a_character_split_between_two_reads_is_whole(make: MakeLaunch, run: Run, tmp_path: Path) -> None:
    told: list[bytes] = []
    os.mkfifo(tmp_path / "gate")

    def tell(data: bytes) -> None:
        told.extend([data] if data else [])
        if data == b"\xe4\xb8":
            with (tmp_path / "gate").open("wb") as gate:
                gate.write(b"go\n")

    ran = run(make(f"printf '\\xe4\\xb8'; read -r line <{tmp_path}/gate; printf '\\x96'"), on_output=tell)
    assert told == [b"\xe4\xb8", b"\x96"]
    assert ran.output.head.decode() == "世"
