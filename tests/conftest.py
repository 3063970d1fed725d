"""What all tests share: how deep a run goes, and a Handrail over a temporary workspace."""

import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from apart import environment_in
from handrail import Handrail
from handrail.settings import Settings
from handrail.workspace.search import search
from journals import check_journals
from sharing import FOLDER, UNTIL, Share

pytest_plugins = ["tests.wires.fixtures"]

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}

_QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("everyday", derandomize=True, max_examples=30, **_QUIET)
settings.register_profile("deep", max_examples=500, **_QUIET)
settings.load_profile("deep" if DEEP else "everyday")

# A run in the background inherits these as ignored, and would hand that on to every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_ignored, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Takes part where several runs share the tests; a run that a test starts does not."""
    if folder := os.environ.pop(FOLDER, None):
        config.pluginmanager.register(Share(Path(folder), float(os.environ.pop(UNTIL, "inf"))))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Many thousand tests stay until the end: looking through them for garbage, over and over, took a third of this."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(autouse=True)
def journals_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test's sessions wrote is valid by the exported schema. First to be set up, so last to look."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is not None:
        check_journals(folder, request.node.name, all_of_it=DEEP)


@pytest.fixture(autouse=True)
def searches_have_time(request: pytest.FixtureRequest) -> Iterator[None]:
    """A busy machine takes nothing from what a search finds. Tests of the time itself are marked `usual_time`."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("usual_time") is None:
            patch.setattr(search, "MAX_SECONDS", 60.0)
            patch.setattr(search, "_PYTHON_SECONDS", 60.0)
        yield


@pytest.fixture
def deep() -> bool:
    """Whether the full counts are run."""
    return DEEP


@pytest.fixture
def count() -> Callable[[int], int]:
    """The full count in a deep run, a thirtieth of it every day."""
    return lambda full: full if DEEP else max(1, full // 30)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a program gets that a test starts."""
    return environment_in(tmp_path)


@pytest.fixture
def rail(tmp_path: Path, workspace: Path) -> Iterator[Callable[..., Handrail]]:
    """Opens Handrails over the workspace, all with one state folder; closes them at the end."""
    opened: list[Handrail] = []

    def make(**options: Any) -> Handrail:
        chosen = {"mode": "auto", "settings": Settings(), "state_dir": tmp_path / "state", **options}
        opened.append(Handrail(chosen.pop("workspace", workspace), **chosen))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Adds a line to what the test's report says, such as how often something happened."""
    return lambda text: request.node.user_properties.append(("note", text))
