"""Trials that are put by: whole, for as long as somebody may want them, and given back as they were."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.changes.support import World, a_world

from handrail.changes.history import History
from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import examine
from handrail.changes.overlay.previews import delete_preview, load_preview, restack, save_preview
from handrail.process.result import CapturedOutput, CommandResult
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.overlay.overlay import Overlay
from handrail.store.change_log import Step

SAMPLE = Path(__file__).with_name("samples") / "trial-1.msgpack"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as one:
        yield one


@pytest.fixture
def history(tmp_path: Path) -> History:
    folder = tmp_path / "history"
    folder.mkdir()
    return History(str(folder))


def a_trial(examined: OverlayChanges, **printed: Any) -> CommandPreview:
    output = CapturedOutput(**({"head": b"said\n", "total": 5} | printed))
    ran = CommandResult(ending="exit", exit_code=0, seconds=0.1, output=output)
    return CommandPreview(ran=ran, examined=examined, sandbox=SandboxUsed(tier=3, net="none", undo="layer"))


def tried(world: World, script: str, **printed: Any) -> tuple[CommandPreview, Overlay]:
    layer = world.layer(script)
    return a_trial(examine(world.workspace(), layer), **printed), layer


def content(history: History, digest: str) -> bytes:
    return b"".join(history.blobs.chunks(digest))


def refused(history: History, name: str) -> str:
    with pytest.raises(ToolError) as caught:
        load_preview(history, name)
    assert caught.value.code == "CONFLICT"
    assert caught.value.message.endswith(" Nothing was kept. Call again.")
    return caught.value.message


def test_a_trial_comes_back_as_it_was_with_every_content(world: World, history: History) -> None:
    world.sh("echo a >a; echo b >b")
    made = "head -c 900000 /dev/urandom >large; ln -s a l; mkdir -p d/e; echo x >d/e/x; chmod 0 d/e/x d/e"
    script = f"echo more >>a; rm b; {made}"
    trial, layer = tried(world, script)
    name = save_preview(world.workspace(), history, trial, layer)
    layer.remove()
    assert load_preview(history, name) == trial
    for step in trial.examined.steps:
        if step.after is not None and step.after.hash:
            assert len(content(history, step.after.hash)) == step.after.size


def test_what_was_printed_is_moved_in_and_given_back_as_a_file(world: World, history: History, tmp_path: Path) -> None:
    spilled = tmp_path / "spilled"
    spilled.write_bytes(b"much" * 1000)
    more = {"total": 5000, "spilled": str(spilled), "spilled_bytes": 4000, "tail": b"end", "lost": 992}
    trial, layer = tried(world, "echo a >a", **more)
    name = save_preview(world.workspace(), history, trial, layer)
    assert not spilled.exists()
    found = load_preview(history, name).ran.output
    assert found.spilled is not None
    assert Path(found.spilled).read_bytes() == b"much" * 1000
    assert msgspec.structs.replace(found, spilled=str(spilled)) == trial.ran.output
    os.unlink(found.spilled)  # whoever has it puts it away
    again = load_preview(history, name).ran.output
    assert (again.spilled, again.spilled_bytes, again.lost) == (None, 0, 5000 - 5 - 3)


def test_what_is_laid_into_a_layer_again_is_what_was_sealed(world: World, history: History) -> None:
    world.sh("mkdir d; echo x >d/x; echo a >a; echo b >b")
    mark = "setfattr -n user.overlay.whiteout -v y e; setfattr -n user.mine -v m e"
    trial, layer = tried(world, f"echo more >>a; rm b; rm -r d; mkdir d; echo y >d/y; ln -s a l; : >e; {mark}")
    name = save_preview(world.workspace(), history, trial, layer)
    layer.remove()
    again = world.layer("true")
    restack(world.workspace(), history, [load_preview(history, name).examined], again)
    found = examine(world.workspace(), again)
    assert {step.path: step for step in found.steps} == {step.path: step for step in trial.examined.steps}
    attributes = {step.path: manner.attributes for step, manner in zip(found.steps, found.manners, strict=True)}
    assert attributes[b"e"] == {"user.overlay.whiteout": b"y", "user.mine": b"m"}


def test_one_that_was_dropped_is_gone_with_all_that_was_printed(world: World, history: History, tmp_path: Path) -> None:
    spilled = tmp_path / "spilled"
    spilled.write_bytes(b"x")
    name = save_preview(world.workspace(), history, *tried(world, "true", spilled=str(spilled), spilled_bytes=1))
    delete_preview(history, name)
    delete_preview(history, name)
    assert refused(history, name).startswith("The preview is no longer stored.")
    assert os.listdir(os.path.join(history.folder, "trials")) == []


@pytest.mark.parametrize("name", ["", "..", "../x", "try_1/..", "try_zz", "trials"])
def test_a_name_that_is_none_leads_nowhere(history: History, name: str) -> None:
    delete_preview(history, name)
    assert "is no longer stored" in refused(history, name)
    assert os.path.isdir(history.folder)


def test_one_that_was_damaged_says_so(world: World, history: History) -> None:
    name = save_preview(world.workspace(), history, *tried(world, "echo a >a"))
    path = Path(history.folder) / "trials" / name / "trial"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], b"\xc1" + whole, msgspec.msgpack.encode({"document": {"ran": 1}})):
        path.write_bytes(damaged)
        assert refused(history, name).startswith("The preview cannot be read: it is damaged.")
    path.write_bytes(msgspec.msgpack.encode({"document": {}, "version": 2}))
    assert "The preview cannot be read: a newer handrail made it" in refused(history, name)


def test_one_whose_contents_are_missing_says_so(world: World, history: History) -> None:
    name = save_preview(world.workspace(), history, *tried(world, "echo a >a"))
    shutil.rmtree(os.path.join(history.folder, "trials", name, "contents"))
    assert refused(history, name).startswith("The preview is incomplete: ")


def test_one_of_an_earlier_version_can_still_be_read(history: History) -> None:
    name = "try_" + "0" * 32
    folder = Path(history.folder) / "trials" / name
    folder.mkdir(parents=True)
    (folder / "trial").write_bytes(SAMPLE.read_bytes())
    history.blobs.put(b"a\n")
    trial = load_preview(history, name)
    assert trial.ran.output.head == b"said\n"
    digest = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"
    assert trial.examined.steps == (Step(b"a", None, State(kind="file", hash=digest, size=2, mode=0o644)),)


def test_a_crash_while_it_is_written_leaves_nothing(
    world: World, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, layer = tried(world, "echo a >a")

    def crash(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.rename", crash)
        with pytest.raises(StoreError, match="cannot be stored"):
            save_preview(world.workspace(), history, trial, layer)
    assert os.listdir(os.path.join(history.folder, "trials")) == []


def test_one_that_a_killed_process_left_unfinished_is_swept_and_never_seen(history: History) -> None:
    unfinished = Path(history.folder) / "trials" / f"try_{'0' * 32}.new"
    unfinished.mkdir(parents=True)
    (unfinished / "output").write_text("x")
    assert history.previews.names() == []
    history.previews.sweep(0.0)
    assert unfinished.exists(), "it may be on its way"
    make_old(unfinished, 0.1)
    history.previews.sweep(0.0)
    assert not unfinished.exists()


def test_a_process_that_is_killed_while_it_seals_leaves_none_that_counts(world: World, history: History) -> None:
    trial, layer = tried(world, "echo a >a")
    child = os.fork()
    if child == 0:
        os.rename = lambda *_: os._exit(9)  # type: ignore[assignment]
        save_preview(world.workspace(), history, trial, layer)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert history.previews.names() == []
    [left] = os.listdir(os.path.join(history.folder, "trials"))
    make_old(Path(history.folder) / "trials" / left, 1)
    history.previews.sweep(0.0)
    assert os.listdir(os.path.join(history.folder, "trials")) == []


def make_old(path: Path, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(path, (then, then))


def test_a_sweep_keeps_what_those_who_wait_need_and_forgets_them_in_time(world: World, history: History) -> None:
    name = save_preview(world.workspace(), history, *tried(world, "echo a >a"))
    history.blobs.put(b"a\n")  # where older versions put what a trial needs
    history.blobs.put(b"nobody's")
    for _, path in list(history.blobs.files()):
        make_old(Path(path), 2)
    history.close()
    assert len(list(history.blobs.files())) == 1
    assert load_preview(history, name).examined.steps
    make_old(Path(history.folder) / "trials" / name, 31)
    with contextlib.suppress(FileNotFoundError):
        make_old(Path(history.folder) / "swept", 1.5)
    history.close()
    assert history.previews.names() == []
    assert list(history.blobs.files()) == []


def test_what_rejected_trials_left_is_swept_where_nothing_was_ever_changed(history: History) -> None:
    history.blobs.put(b"of a trial that an older version dropped")
    for _, path in list(history.blobs.files()):
        make_old(Path(path), 2)
    history.close()
    assert list(history.blobs.files()) == []


def test_a_history_of_which_nothing_is_kept_leaves_no_trace(history: History) -> None:
    history.close()
    assert os.listdir(history.folder) == []
