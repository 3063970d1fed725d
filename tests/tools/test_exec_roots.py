"""Commands work in the very folders that were opened, whatever takes their names."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail

Make = Callable[..., Handrail]


@pytest.mark.parametrize("command", ["cat secret.txt", "cat secret.txt; echo x >made.txt"])
def test_a_root_that_a_link_took_the_place_of_is_not_run_in(
    tmp_path: Path, workspace: Path, rail: Make, command: str
) -> None:
    home, inner = tmp_path / "somebody", workspace / "a/inner"
    home.mkdir()
    (home / "secret.txt").write_text("secret")
    inner.mkdir(parents=True)
    with Handrail(str(inner), mode="full", state_dir=str(tmp_path / "state-of-inner")) as session:
        assert session.call("exec", {"command": "ls"}).ok
        script = f"mv a b; mkdir a; ln -s {home} a/inner"
        (workspace / "script").write_text(script)
        assert rail(mode="full").call("exec", {"command": "bash script"}).ok
        result = session.call("exec", {"command": command})
    assert result.error is not None
    assert result.error.code == "CONFLICT"
    assert "secret" not in str(result.content)
    assert [path.name for path in home.iterdir()] == ["secret.txt"]


def test_a_root_that_was_moved_can_still_be_read_and_is_not_run_in(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.txt").write_text("one\n")
    with Handrail(str(place), mode="full", state_dir=str(tmp_path / "state")) as session:
        place.rename(tmp_path / "elsewhere")
        place.mkdir()
        result = session.call("exec", {"command": "ls"})
        assert result.error is not None
        assert result.error.code == "CONFLICT"
        assert session.call("read", {"path": "a.txt"}).ok
