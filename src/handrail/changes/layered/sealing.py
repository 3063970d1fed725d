"""Puts a trial by, with all that keeping it would take: the layer can go then."""

import contextlib
import os

import msgspec

from handrail.changes.history import History
from handrail.changes.layered.trial import Trial
from handrail.protocol.error import ToolError
from handrail.sandbox.layer.layer import Layer
from handrail.store.change_log import Step
from handrail.store.identity import new_id
from handrail.workspace.workspace import Workspace


def seal(workspace: Workspace, history: History, trial: Trial, layer: Layer) -> str:
    """Stores the trial, with what every file would become; what to find it by."""
    for step in trial.examined.steps:
        store_after(workspace, history, step, layer)
    name = new_id("try")
    folder = os.path.join(history.folder, "trials")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(os.path.join(folder, name), "xb") as file:
        file.write(msgspec.msgpack.encode(trial))
    return name


def unseal(history: History, name: str) -> Trial:
    """The trial; CONFLICT where it is gone."""
    try:
        with open(os.path.join(history.folder, "trials", name), "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=Trial)
    except (OSError, msgspec.DecodeError):
        raise ToolError("CONFLICT", "What was tried is not kept any more. Nothing was kept. Call again.") from None


def drop(history: History, name: str) -> None:
    """Forgets a trial: nobody will ask for it any more. Can be repeated."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(history.folder, "trials", name))


def store_after(workspace: Workspace, history: History, step: Step, layer: Layer) -> None:
    """Stores what a file would become."""
    if step.after is None or step.after.kind == "folder":
        return
    place = upper_path(workspace, step.path, layer)
    if step.after.kind == "link":
        history.blobs.put(os.readlink(place), pack=True)
        return
    with open(place, "rb") as file:
        history.blobs.keep(step.after.hash, file.read(), pack=True)


def upper_path(workspace: Workspace, path: bytes, layer: Layer) -> bytes:
    """Where the layer has a path."""
    full = os.path.join(os.fsencode(workspace.main.path), path)
    over = max(
        (one for one in layer.overlaid if full.startswith(os.fsencode(one.root) + b"/")), key=lambda one: len(one.root)
    )
    return os.fsencode(over.upper) + full[len(os.fsencode(over.root)) :]
