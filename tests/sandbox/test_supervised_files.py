"""Tier 1 and files: outside the roots nothing is read or changed, and what is hidden or sealed stays so."""

import os
import sys
from pathlib import Path

import pytest
from supervising import PYTHON, a_host, confined, run

from handrail.kernel.landlock import read_abi_version
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import CommandOrigin

pytestmark = pytest.mark.skipif(read_abi_version() < 6, reason="tier 1 gives less without Landlock's newer rights")
TRUSTS: tuple[CommandOrigin, ...] = ("proven", "unasked", "approved")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("secret\n")
    return folder


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize(
    "attempt",
    [
        "echo x > {}/new",
        "echo x >> {}/file",
        "rm {}/file",
        "mv {}/file {}/other",
        "ln {}/file linked",
        "ln -s x {}/link",
        "mkdir {}/folder",
        "mkfifo {}/pipe",
        "truncate -s 0 {}/file",
        ": < {}/file",
        "cat {}/file",
        "ls {}",
        "cd {} && cat file",
        "cat /proc/self/root{}/file",
        "{python} -c 'import os; os.open(\"{}/file\", os.O_RDONLY | os.O_TRUNC)'",
        'ln -s {}/file "$TMPDIR/l" && cat "$TMPDIR/l"',
        'cp {python} "$TMPDIR/p" && "$TMPDIR/p" -ISc \'open("{}/file")\'',
    ],
)
def test_what_is_outside_can_neither_be_read_nor_changed(
    tmp_path: Path, workspace: Path, outside: Path, trust: CommandOrigin, attempt: str
) -> None:
    text = attempt.replace("{python}", PYTHON).replace("{}", str(outside))
    outcome = run(confined(workspace, trust), a_host(tmp_path), text)
    assert outcome.exit_code != 0
    assert "ermission" in outcome.output or "not permitted" in outcome.output or "cross-device" in outcome.output
    assert "secret" not in outcome.output
    assert sorted(os.listdir(outside)) == ["file"]
    assert (outside / "file").read_text() == "secret\n"


def test_the_home_cannot_be_read_but_for_its_toolchains(tmp_path: Path, workspace: Path) -> None:
    host = a_host(tmp_path, toolchains=(sys.base_prefix, str(tmp_path / "home/.tool")))
    (tmp_path / "home/.tool").mkdir()
    (tmp_path / "home/.tool/data").write_text("shown\n")
    (tmp_path / "home/.netrc").write_text("secret\n")
    real = tmp_path / "home"
    outcome = run(confined(workspace), host, f"cat ~/.tool/data {real}/.tool/data {real}/.netrc; ls {real}")
    assert outcome.output.count("shown") == 2
    assert "secret" not in outcome.output
    assert outcome.output.count("ermission denied") == 2


def test_a_toolchain_cannot_be_changed(tmp_path: Path, workspace: Path) -> None:
    host = a_host(tmp_path, toolchains=(str(tmp_path / "home/.tool"),))
    (tmp_path / "home/.tool").mkdir()
    assert run(confined(workspace), host, "touch ~/.tool/new").exit_code == 1
    assert not list((tmp_path / "home/.tool").iterdir())


def test_the_state_folder_cannot_be_read_even_inside_a_root(tmp_path: Path, workspace: Path) -> None:
    host = a_host(tmp_path, state=str(workspace / "state"))
    (workspace / "state").mkdir()
    (workspace / "state/log").write_text("secret\n")
    (workspace / "file").write_text("shown\n")
    outcome = run(confined(workspace, "proven"), host, "cat file state/log")
    assert "shown" in outcome.output
    assert "secret" not in outcome.output


def test_a_root_can_be_changed_in_every_way(tmp_path: Path, workspace: Path) -> None:
    text = (
        "set -e; mkdir -p a/b; echo one > a/b/f; mv a/b/f a/g; ln a/g h; ln -s h s; mkfifo p; cat s; truncate -s 0 h;"
        " chmod 700 h; touch -d 2001-01-01 h; rm p; rm -r a"
    )
    outcome = run(confined(workspace), a_host(tmp_path), text)
    assert outcome == (0, "one\n", outcome.status)
    assert sorted(os.listdir(workspace)) == ["h", "s"]


def test_a_command_that_only_looks_cannot_change_a_root(tmp_path: Path, workspace: Path) -> None:
    (workspace / "file").write_text("kept\n")
    text = "cat file; echo x > file; echo x > new; rm file; chmod 777 file; touch file; mkdir d"
    outcome = run(confined(workspace, "proven"), a_host(tmp_path), text)
    assert outcome.output.startswith("kept\n")
    assert os.listdir(workspace) == ["file"]
    assert (workspace / "file").read_text() == "kept\n"


def test_temporary_files_and_the_home_are_the_commands_own_and_go_with_it(tmp_path: Path, workspace: Path) -> None:
    text = (
        'set -e; f=$(mktemp); echo one > "$f"; cat "$f"; echo two > ~/file; cat ~/file; stat -c %a "$TMPDIR/..";'
        " mkdir -p ~/deep/er/still; touch ~/deep/er/still/f; chmod 000 ~/deep/er ~/deep;"
        ' mkdir "$TMPDIR/home"; echo "$TMPDIR"'
    )
    outcome = run(confined(workspace), a_host(tmp_path), text)
    *told, temporary = outcome.output.split()
    assert (outcome.exit_code, told) == (0, ["one", "two", "700"])
    assert not Path(temporary).parent.exists()


def test_a_private_folder_of_any_depth_is_removed(tmp_path: Path, workspace: Path) -> None:
    deep = "import os\nfor _ in range(1200):\n os.mkdir('d'); os.chdir('d'); open('f', 'w').close()"
    outcome = run(confined(workspace), a_host(tmp_path), f'echo "$TMPDIR"; cd "$TMPDIR" && {PYTHON} -ISc "{deep}"')
    assert outcome.exit_code == 0, outcome.output
    assert not Path(outcome.output.strip()).parent.exists()


def test_a_hidden_file_cannot_be_read_while_what_lies_beside_it_can(tmp_path: Path, workspace: Path) -> None:
    for name in (".env", "beside", "deep/er/.env", "deep/er/beside", "deep/beside", "other/file"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"in {name}\n")
    hidden = (str(workspace / ".env"), str(workspace / "deep/er/.env"))
    for trust in TRUSTS:
        outcome = run(
            confined(workspace, trust, hidden_files=hidden), a_host(tmp_path), "cat $(find . -type f | sort); true"
        )
        assert [line for line in outcome.output.splitlines() if line.startswith("in ")] == [
            "in beside",
            "in deep/beside",
            "in deep/er/beside",
            "in other/file",
        ]


@pytest.mark.parametrize(
    "attempt",
    [
        "cat .env",
        "ln .env other/e && cat other/e",
        "mv .env other/e && cat other/e",
        "cp .env other/e",
        "mv deep other/d && cat other/d/er/.env",
        "{python} -c 'import os; print(os.open(\".env\", os.O_RDONLY))'",
        "cat deep/er/.env",
        "cat secrets/key",
        "mv secrets/key other/key && cat other/key",
    ],
)
def test_what_is_hidden_cannot_be_moved_to_where_it_could_be_read(
    tmp_path: Path, workspace: Path, attempt: str
) -> None:
    for name in (".env", "deep/er/.env", "other/file", "secrets/key"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("secret\n")
    confinement = confined(
        workspace,
        hidden_files=(str(workspace / ".env"), str(workspace / "deep/er/.env")),
        hidden_folders=(str(workspace / "secrets"),),
    )
    outcome = run(confinement, a_host(tmp_path), attempt.replace("{python}", PYTHON))
    assert outcome.exit_code != 0
    assert "secret\n" not in outcome.output
    assert sorted(os.listdir(workspace)) == [".env", "deep", "other", "secrets"]


@pytest.mark.parametrize("target", ["sealed.toml", "folder/hook", "vendor/file"])
@pytest.mark.parametrize(
    "attempt", ["cat {} && echo x > {}", "rm {}", "mv {} free/f", "mv {} {}2", "ln -f free/own {}", "mv -f free/own {}"]
)
def test_what_is_sealed_can_be_read_and_not_changed(tmp_path: Path, workspace: Path, target: str, attempt: str) -> None:
    for name in ("sealed.toml", "folder/hook", "vendor/file", "free/own"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"in {name}\n")
    confinement = confined(
        workspace,
        "approved",
        read_only=(str(workspace / "vendor"),),
        read_only_paths=(str(workspace / "sealed.toml"), str(workspace / "folder")),
    )
    outcome = run(confinement, a_host(tmp_path), attempt.replace("{}", target))
    assert outcome.exit_code != 0
    assert (f"in {target}" in outcome.output) == attempt.startswith("cat")
    assert (workspace / target).read_text() == f"in {target}\n"
    assert run(confinement, a_host(tmp_path), "echo y > free/new && mv free/new free/own").exit_code == 0


def test_a_sealed_or_hidden_link_counts_for_what_it_leads_to(tmp_path: Path, workspace: Path) -> None:
    for name in ("settings/real", "keys/real", "free/file"):
        (workspace / name).parent.mkdir()
        (workspace / name).write_text("as it was\n")
    (workspace / "sealed").symlink_to("settings/real")
    (workspace / ".env").symlink_to("keys/real")
    confinement = confined(
        workspace, read_only_paths=(str(workspace / "sealed"),), hidden_files=(str(workspace / ".env"),)
    )
    text = "echo x > sealed; echo x > settings/real; rm sealed; ln -sf free/file sealed; cat .env keys/real"
    outcome = run(confinement, a_host(tmp_path), text)
    assert outcome.output.count("ermission denied") == 6
    assert "as it was" not in outcome.output
    assert (workspace / "sealed").read_text() == "as it was\n"
    assert run(confinement, a_host(tmp_path), "cat sealed; echo x > free/new").output == "as it was\n"


def test_what_is_sealed_and_not_there_takes_nothing_away(tmp_path: Path, workspace: Path) -> None:
    confinement = confined(workspace, read_only_paths=(f"{workspace}/gone",), hidden_files=(f"{workspace}/gone.env",))
    assert run(confinement, a_host(tmp_path), "echo x > new; cat new").output == "x\n"


def test_too_many_files_beside_something_hidden_are_refused_and_said(tmp_path: Path, workspace: Path) -> None:
    for number in range(2_001):
        (workspace / str(number)).touch()
    (workspace / ".env").touch()
    with pytest.raises(ToolError, match=r"the limit is 2000 rules, and .* needs one more") as refusal:
        run(confined(workspace, hidden_files=(str(workspace / ".env"),)), a_host(tmp_path), "true")
    assert refusal.value.code == "SANDBOX_UNAVAILABLE"
    assert run(confined(workspace), a_host(tmp_path), "true").exit_code == 0
