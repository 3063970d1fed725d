"""Settings files of every layer below one folder, loaded as a session loads them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.settings import LoadedSettings, SettingsError, load


def load_layers(
    folder: Path,
    *,
    managed: str | None = None,
    user: str | None = None,
    project: str | None = None,
    session: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    trusted: bool | None = None,
) -> LoadedSettings:
    """Write the files that have a text, then load."""
    workspace = folder / "shop"
    workspace.mkdir(exist_ok=True)
    for path, text in (
        (folder / "managed.toml", managed),
        (folder / "home/.config/handrail/config.toml", user),
        (workspace / "handrail.toml", project),
    ):
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    variables = {"HOME": str(folder / "home"), **(environ or {})}
    return load(variables, flags or {}, str(workspace), str(folder / "managed.toml"), session, trusted=trusted)


def find_problem(folder: Path, user: str) -> str:
    """The one thing that is wrong with a user file."""
    with pytest.raises(SettingsError) as caught:
        load_layers(folder, user=user)
    (only,) = caught.value.problems
    return only
