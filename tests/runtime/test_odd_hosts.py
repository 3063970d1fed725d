"""Commands run the same in a program that has closed its streams, ignores its signals, or lost its folder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from odd_host import ODDITIES

HOST = Path(__file__).with_name("odd_host.py")
COMMANDS = {
    "echo out; echo err >&2; exit 3": "out\nerr\n[exit code 3]\n",
    "for file in /proc/self/status; do grep -E 'Sig(Blk|Ign)' $file; done":
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n",
    "sleep 300 & kill $!; wait $!; echo $?; yes | head -n 1": "143\ny\n",
    "for fd in /proc/self/fd; do ls $fd | wc -l; done": "4\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("oddity", "tier"),
    [*((oddity, 2) for oddity in ODDITIES), ("standard_streams_closed", 1), ("children_ignored", 1)],
)
def test_an_odd_program_gets_the_results_of_any_other(tmp_path: Path, workspace: Path, oddity: str, tier: int) -> None:
    told = tmp_path / "told"
    words = [sys.executable, HOST, workspace, tmp_path / "state", str(tier), oddity, told, *COMMANDS]
    subprocess.run(words, check=True, cwd=tmp_path, timeout=120)
    assert json.loads(told.read_text()) == [[content, tier] for content in COMMANDS.values()]
