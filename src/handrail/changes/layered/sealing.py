"""Puts a trial by, with all that keeping it would take: the layer can go then."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.layered.opening import open_file, opened_parent
from handrail.changes.layered.places import below_upper
from handrail.changes.layered.trial import Examined, Trial
from handrail.process.ran import Printed
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.reading import from_msgpack
from handrail.sandbox.layer.layer import Layer
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.store.identity import new_id
from handrail.store.trials import Sealed
from handrail.workspace.workspace import Workspace

_NOTHING_KEPT = "Nothing was kept. Call again."
_OUTPUT, _ERRORS = "output", "errors"
_SMALL = 1 << 18
"""Bytes up to which a content is read in one piece."""


def seal(workspace: Workspace, history: History, trial: Trial, layer: Layer | None) -> str:
    """Stores the trial, with what every file would become and all that was printed; what to find it by. `layer`: where
    that is; None where it is kept already."""
    name = new_id("try")
    printed = {_OUTPUT: trial.ran.output, _ERRORS: trial.ran.errors}
    files = {inner: one.spilled for inner, one in printed.items() if one is not None and one.spilled is not None}
    plain = replace(trial, ran=replace(trial.ran, output=_without(printed[_OUTPUT]), errors=_without(printed[_ERRORS])))
    size = sum(one.spilled_bytes for one in printed.values() if one is not None)
    size += size_of(trial.examined) if layer is not None else 0
    sealed = Sealed(msgspec.Raw(msgspec.msgpack.encode(plain)), _contents(trial), size)
    history.trials.put(name, sealed, files, partial(_store_all_after, workspace, trial.examined.steps, layer))
    history.blobs.borrow(history.trials.blobs(name), sealed.contents)
    return name


def size_of(examined: Examined) -> int:
    """Bytes of the contents that a trial needs."""
    return sum(step.after.size for step in _one_of_each(examined.steps) if step.after is not None)


def unseal(history: History, name: str) -> Trial:
    """The trial; what was printed is a file again, where it was one. CONFLICT where it is gone, or cannot be read."""
    try:
        sealed = history.trials.get(name)
        if sealed is None:
            raise ToolError("CONFLICT", f"What was tried is not kept any more. {_NOTHING_KEPT}")
        trial = from_msgpack(sealed.document, Trial)
    except StoreError as error:
        raise ToolError("CONFLICT", f"{_sentence(str(error))} {_NOTHING_KEPT}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ToolError("CONFLICT", f"What was tried cannot be read: it is damaged. {_NOTHING_KEPT}") from None
    lender = history.trials.blobs(name)
    missing = [digest for digest in sealed.contents if not (lender.has(digest) or history.blobs.has(digest))]
    if missing:
        raise ToolError("CONFLICT", f"What was tried is not whole: {missing[0][:12]} is missing. {_NOTHING_KEPT}")
    history.blobs.borrow(lender, sealed.contents)
    output, errors = (
        _with_file(printed, history.trials.file(name, inner))
        for inner, printed in ((_OUTPUT, trial.ran.output), (_ERRORS, trial.ran.errors))
    )
    return replace(trial, ran=replace(trial.ran, output=output, errors=errors))


def drop(history: History, name: str) -> None:
    """Deletes a trial with its contents: nobody will ask for it any more. Can be repeated."""
    history.blobs.give_back(history.trials.blobs(name))
    history.trials.drop(name)


def _store_all_after(workspace: Workspace, steps: Iterable[Step], layer: Layer | None, blobs: Blobs) -> None:
    """Stores what every file would become: what is small together, what is large piece by piece."""
    if layer is None:
        return
    steps = _one_of_each(steps)
    blobs.keep_all(_small_contents(workspace, steps, layer))
    for step in steps:
        if step.after is not None and step.after.size > _SMALL:
            store_after(workspace, blobs, step, layer)


def _one_of_each(steps: Iterable[Step]) -> list[Step]:
    """The first step to each content: of the names of one file, the layer may have only the first."""
    first: dict[str, Step] = {}
    for step in steps:
        if step.after is not None:
            first.setdefault(step.after.hash, step)
    return list(first.values())


def store_after(workspace: Workspace, blobs: Blobs, step: Step, layer: Layer) -> None:
    """Stores what a file would become."""
    if step.after is not None and step.after.size > _SMALL and step.after.kind == "file":
        descriptor = _open_after(workspace, step, layer)
        try:
            blobs.keep_file(step.after.hash, descriptor)
        finally:
            os.close(descriptor)
        return
    for digest, data in _small_contents(workspace, (step,), layer):
        blobs.keep(digest, data, pack=True)


def _small_contents(workspace: Workspace, steps: Iterable[Step], layer: Layer) -> Iterator[tuple[str, bytes]]:
    for step in steps:
        after = step.after
        if after is None or after.kind == "folder" or after.size > _SMALL:
            continue
        data = _read_link(workspace, step, layer) if after.kind == "link" else _read_file(workspace, step, layer)
        if hashlib.sha256(data).hexdigest() != after.hash:
            raise StoreError(f"{os.fsdecode(step.path)} is not what it was when it was looked at")
        yield after.hash, data


def _read_link(workspace: Workspace, step: Step, layer: Layer) -> bytes:
    over, relative = below_upper(workspace, step.path, layer)
    with opened_parent(over.upper, relative) as (folder, name):
        return os.fsencode(os.readlink(name, dir_fd=folder))


def _read_file(workspace: Workspace, step: Step, layer: Layer) -> bytes:
    with open(_open_after(workspace, step, layer), "rb") as file:
        return file.read(_SMALL + 1)


def _open_after(workspace: Workspace, step: Step, layer: Layer) -> int:
    over, relative = below_upper(workspace, step.path, layer)
    with opened_parent(over.upper, relative) as (folder, name):
        return open_file(name, folder)


def _contents(trial: Trial) -> tuple[str, ...]:
    afters = (step.after for step in trial.examined.steps)
    return tuple(dict.fromkeys(after.hash for after in afters if after is not None and after.hash))


def _without(printed: Printed | None) -> Printed | None:
    """As it is stored: the file has a name of its own there."""
    return replace(printed, spilled="" if printed.spilled is not None else None) if printed is not None else None


def _with_file(printed: Printed | None, path: str | None) -> Printed | None:
    if printed is None or printed.spilled is None:
        return printed
    if path is not None:
        return replace(printed, spilled=path)
    # Somebody took the file already: what memory held is left.
    lost = printed.total - len(printed.head) - len(printed.tail)
    return replace(printed, spilled=None, spilled_bytes=0, lost=lost)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
