"""Which ripgrep is run, and what happens when it does not do its work."""

import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.workspace.search.ripgrep import find_ripgrep

Rail = Callable[..., Handrail]
ONLY_RIPGREP = Settings(search=Search(engine="ripgrep"))


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_one_on_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = program(tmp_path / "bin" / "rg", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"/nowhere:{mine.parent}:/usr/bin")
    assert find_ripgrep(()) == str(mine)


def test_without_one_on_path_the_wheels_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_ripgrep(())
    assert found is not None
    assert os.path.isabs(found)
    assert os.access(found, os.X_OK)


@pytest.mark.parametrize("entry", ["bin", ".", "", "bin/../bin"])
def test_a_relative_entry_of_path_is_not_looked_at(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    program(workspace / "bin" / "rg", "#!/bin/sh\n")
    program(workspace / "rg", "#!/bin/sh\n")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", entry)
    assert str(workspace) not in str(find_ripgrep(()))


def test_one_behind_a_link_in_a_root_is_never_run(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link may lead elsewhere by the time that it is run."""
    true = program(tmp_path / "true" / "rg", "#!/bin/sh\n")
    (workspace / "tool").symlink_to(true)
    (workspace / "folder").symlink_to(true.parent)
    for number, target in enumerate((workspace / "tool", workspace / "folder" / "rg")):
        folder = tmp_path / f"bin{number}"
        folder.mkdir()
        (folder / "rg").symlink_to(target)
        monkeypatch.setenv("PATH", str(folder))
        assert find_ripgrep(()) == os.path.realpath(true)
        assert find_ripgrep((str(workspace),)) not in {None, os.path.realpath(true), str(folder / "rg")}


def test_one_that_lies_in_a_root_is_never_run(rail: Rail, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owned = workspace / "owned"
    trap = program(workspace / ".venv" / "bin" / "rg", f"#!/bin/sh\ntouch {owned}\n")
    (workspace.parent / "to it").mkdir()
    (workspace.parent / "to it" / "rg").symlink_to(trap)
    (workspace.parent / "to its folder").symlink_to(trap.parent)
    inside = f"{trap.parent}:{workspace.parent / 'to it'}:{workspace.parent / 'to its folder'}"
    monkeypatch.setenv("PATH", inside)
    (workspace / "a.txt").write_text("hit\n")
    assert rail().grep("hit").meta.total == 1
    assert not owned.exists()


def test_a_program_that_cannot_be_started_is_told(
    rail: Rail, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "rg", "#!/nowhere\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for result in (rail(settings=ONLY_RIPGREP).grep("x"), rail(settings=ONLY_RIPGREP).find("x")):
        assert (result.error.code, "could not be started" in result.error.message) == ("UNAVAILABLE", True)


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("kill -9 $$", "IO_ERROR", "signal 9"),
        ("echo oh no >&2; exit 2", "UNAVAILABLE", "oh no"),
        ("echo unrecognized flag --no-require-git >&2; exit 2", "UNAVAILABLE", "unrecognized flag"),
        ("head -c 20000000 /dev/zero | tr '\\0' x >&2; exit 2", "UNAVAILABLE", "status 2"),
    ],
)
def test_a_program_that_dies_is_told_and_bounded(
    rail: Rail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: str, words: str
) -> None:
    program(tmp_path / "bin" / "rg", f"#!/bin/sh\nPATH=/bin:/usr/bin\n{script}\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    one = rail(settings=ONLY_RIPGREP)
    for result in (one.grep("x"), one.find("x")):
        assert result.error.code == code
        assert words in result.error.message
        assert len(result.error.message) < 500


@pytest.mark.usual_time
def test_a_program_that_never_ends_is_ended(rail: Rail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "running"
    program(tmp_path / "bin" / "rg", f"#!/bin/sh\necho $$ >>{marker}\nexec /bin/sleep 1000\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    result = rail(settings=ONLY_RIPGREP).grep("x")
    assert result.ok
    assert result.meta.limits == ("search.time",)
    assert result.meta.total_is_lower_bound
    assert result.warnings[0].startswith("The search was not finished in 1 s: narrow")
    for started in marker.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(started), 0)


def test_a_cancelled_search_ends_its_program(rail: Rail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    program(tmp_path / "bin" / "rg", f"#!/bin/sh\necho $$ >{started}\nexec /bin/sleep 1000\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    one = rail(settings=ONLY_RIPGREP)
    with ThreadPoolExecutor(1) as pool:
        searching = pool.submit(one.find, "x")
        number = int(started.read_text())  # waits until it runs
        one.cancel()
        assert searching.result(timeout=40).error.code == "CANCELLED"
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_the_environment_of_the_program_is_nearly_empty(
    rail: Rail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program(tmp_path / "bin" / "rg", f"#!/bin/sh\n/usr/bin/env >{seen}\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/etc/passwd")
    monkeypatch.setenv("A_SECRET_TOKEN", "x")
    rail(settings=ONLY_RIPGREP).find("x")
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert names <= {"HOME", "XDG_CONFIG_HOME", "PWD", "OLDPWD", "SHLVL", "_"}


def test_a_configuration_file_changes_nothing(rail: Rail, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / ".ripgreprc").write_text("--ignore-case\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(workspace / ".ripgreprc"))
    (workspace / "a.txt").write_text("HIT\n")
    assert rail().grep("hit").meta.total == 0


def test_where_everything_is_a_root_there_is_none() -> None:
    assert find_ripgrep(("/",)) is None


def test_a_program_that_can_be_run_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin" / "rg").mkdir(parents=True)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "rg").write_text("#!/bin/sh\n")
    assert not (tmp_path / "more" / "rg").stat().st_mode & stat.S_IXUSR
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{tmp_path / 'more'}")
    assert not str(find_ripgrep(())).startswith(str(tmp_path))
    assert shutil.which("rg", path=str(tmp_path / "bin")) is None
