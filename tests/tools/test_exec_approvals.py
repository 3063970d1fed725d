"""A yes to a command is for what was asked: the folder, the files, the variables, and how well it is confined. That
holds for commands that a yes runs; what was tried before is kept, and not run again."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail, UsageError
from handrail.cli.permission import render_request_text
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.wire import convert
from handrail.sandbox.sandbox import forget_probes
from handrail.settings import Settings
from handrail.settings.model import Sandbox
from handrail.tools.exec import run as command_run

Make = Callable[..., Handrail]
UNTRIED = Settings(preview="never")
CHOSEN = Settings(preview="never", sandbox=Sandbox(environment=("BUILD_KIND",)))


def asked(rail: Handrail, command: str, cwd: str = ".") -> Any:
    result = rail.call("exec", {"command": command, "cwd": cwd})
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED"
    return result.error.details


def answered(rail: Handrail, request: Any) -> Any:
    return rail.answer(request["id"], "once").results[0]


@pytest.fixture
def folders(workspace: Path) -> Path:
    for name in ("build", "src"):
        (workspace / name).mkdir()
    return workspace


@pytest.fixture
def full_disk() -> Iterator[Callable[[Handrail], None]]:
    """Lets no tier be found to work from now on, as when there is no room to try it out."""
    with pytest.MonkeyPatch.context() as patched:

        def fill(rail: Handrail) -> None:
            patched.setattr(tempfile, "tempdir", "/nowhere")
            rail._session.commands.sandbox.forget()

        yield fill
    forget_probes()


def test_a_question_says_which_folder_a_command_would_run_in(folders: Path, rail: Make) -> None:
    (folders / "link").symlink_to("src")
    request = asked(rail(mode="ask"), "touch made", "link")
    assert request["description"] == "Run in link: touch made"
    assert request["cwd"] == "src"
    assert "\nRuns in the folder src\n" in render_request_text(convert(request, PermissionRequest))


def test_a_yes_does_not_count_in_another_folder_that_took_the_name(folders: Path, rail: Make) -> None:
    one = rail(mode="ask", settings=UNTRIED)
    request = asked(one, 'python3 -c \'open("made", "w")\'', "build")
    (folders / "build").rename(folders / "elsewhere")
    (folders / "build").symlink_to("src")
    result = answered(one, request)
    assert result.error.code == "CONFLICT"
    assert not (folders / "src/made").exists()


def test_a_yes_does_not_count_in_a_weaker_sandbox(
    folders: Path, rail: Make, full_disk: Callable[[Handrail], None]
) -> None:
    one = rail(mode="ask", settings=UNTRIED)
    request = asked(one, "touch made")
    assert request["tier"] == 3
    full_disk(one)
    result = answered(one, request)
    assert result.error.code == "CONFLICT"
    assert "tier 0" in result.error.message
    assert not (folders / "made").exists()


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("./run.sh", "run.sh"),
        ("bash run.sh", "run.sh"),
        ("cd src && bash run.sh", "src/run.sh"),
        ("bash -c './run.sh'", "run.sh"),
        ("bash < run.sh", "run.sh"),
        ("echo $$; ./run.sh", "run.sh"),
        ("cp run.sh made", "made"),
        ("cp run.sh made", "run.sh"),
        ("bash run.sh --with=src/data", "src/data"),
    ],
)
def test_a_yes_does_not_count_when_a_file_that_the_command_names_has_changed(
    folders: Path, rail: Make, command: str, file: str
) -> None:
    for script in ("run.sh", "src/run.sh", "src/data"):
        (folders / script).write_text("touch harmless\n")
        (folders / script).chmod(0o755)
    one = rail(mode="ask", settings=UNTRIED)
    request = asked(one, command)
    (folders / file).write_text("touch harm\n")
    result = answered(one, request)
    assert result.error.code == "CONFLICT"
    assert file.rpartition("/")[2] in result.error.message
    assert not list(folders.rglob("harm*"))
    assert answered(one, asked(one, command)).error is None


def test_a_yes_does_not_count_with_other_variables(folders: Path, rail: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUILD_KIND", "debug")
    monkeypatch.setenv("UNLISTED", "1")
    one = rail(mode="ask", settings=CHOSEN)
    request = asked(one, "touch made")
    monkeypatch.setenv("BUILD_KIND", "release")
    result = answered(one, request)
    assert result.error.code == "CONFLICT"
    assert "environment variables" in result.error.message
    assert not (folders / "made").exists()
    request = asked(one, "touch made")
    monkeypatch.setenv("UNLISTED", "2")
    assert answered(one, request).error is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("PATH", "/usr/bin"), ("LANG", "de_DE.UTF-8"), ("BUILD_KIND", None), ("VIRTUAL_ENV", "{}/build")],
)
def test_every_variable_that_a_command_would_get_counts(
    folders: Path, rail: Make, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/usr/sbin")
    monkeypatch.setenv("BUILD_KIND", "debug")
    one = rail(mode="ask", settings=CHOSEN)
    request = asked(one, "touch made")
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value.format(folders))
    assert answered(one, request).error.code == "CONFLICT"


def test_what_was_tried_is_kept_whatever_the_variables_are_by_then(
    folders: Path, rail: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILD_KIND", "debug")
    one = rail(mode="ask", settings=Settings(sandbox=Sandbox(environment=("BUILD_KIND",))))
    request = asked(one, "echo $BUILD_KIND > made")
    monkeypatch.setenv("BUILD_KIND", "release")
    assert answered(one, request).error is None
    assert (folders / "made").read_text() == "debug\n"


def test_a_yes_does_not_count_for_other_hosts(folders: Path, rail: Make) -> None:
    """What a repository calls `origin` may be somewhere else by the time that the answer comes."""
    config = folders / ".git" / "config"
    subprocess.run(["git", "init", "-q", folders], check=True)
    config.write_text(config.read_text() + '[remote "origin"]\n\turl = http://127.0.0.1:1/a.git\n')
    one = rail(mode="ask")
    request = asked(one, "git fetch origin")
    assert (request["hosts"], request.get("grants")) == (("127.0.0.1:1",), None)
    config.write_text(config.read_text().replace("127.0.0.1:1", "127.0.0.1:2"))
    result = answered(one, request)
    assert result.error.code == "CONFLICT"
    assert "other hosts" in result.error.message
    assert asked(one, "git fetch origin")["hosts"] == ("127.0.0.1:2",)


def test_a_yes_is_used_up_by_the_call_it_was_for(folders: Path, rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "mkdir made")
    assert answered(one, request).error is None
    (folders / "made").rmdir()
    with pytest.raises(UsageError, match="answered already"):
        answered(one, request)
    assert asked(one, "mkdir made")["id"] != request["id"]
    assert not (folders / "made").exists()


def test_who_is_asked_where_there_is_no_sandbox_is_told_so(rail: Make) -> None:
    request = asked(rail(mode="ask", settings=Settings(sandbox=Sandbox(tier=0))), "make test")
    assert "there is no sandbox here" in request["reason"]
    assert "! No sandbox here: the command could read and change everything that you can" in render_request_text(
        convert(request, PermissionRequest)
    )


def test_a_sandbox_that_fails_between_decision_and_start_is_not_replaced_by_a_weaker_one(
    folders: Path, rail: Make, full_disk: Callable[[Handrail], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = rail(mode="full")
    commands = one._session.commands
    usual = command_run._resolve_cwd

    def failing(*given: Any, **more: Any) -> Any:
        full_disk(one)
        return usual(*given, **more)

    assert commands.tier == 2
    monkeypatch.setattr(command_run, "_resolve_cwd", failing)
    result = one.call("exec", {"command": "touch made"})
    assert result.error is not None
    assert result.error.code == "CONFLICT"
    assert not (folders / "made").exists()


def test_a_sandbox_that_could_not_be_tried_out_is_tried_again_after_a_while(
    rail: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = rail()
    forget_probes()
    monkeypatch.setattr("handrail.sandbox.sandbox.SECONDS_TO_BELIEVE", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", "/nowhere")
        assert one._session.commands.tier == 0
    assert one._session.commands.tier == 2
