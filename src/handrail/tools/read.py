"""The tool read."""

import binascii
import io
import os
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta

from handrail.protocol.digest import sha256
from handrail.protocol.errors import ToolError
from handrail.protocol.results import MAX_IMAGE_BYTES, Attachment, find_image_type
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.store.conversation_state import OUTPUT
from handrail.tools.tool import Context, Output, Outputs, ReadMarks, Tool, Touches
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import hash_range, read_contents
from handrail.workspace.pages import (
    LineIndexes,
    PageMark,
    TextPage,
    WholeFileMark,
    build_text_page,
    build_whole_page,
    encode_mark,
    identify_content,
    is_settled,
    read_large_page,
    read_row_page,
)
from handrail.workspace.roots import clip_path
from handrail.workspace.text import SAMPLE_BYTES, Encoding, decode_text, detect_start_encoding
from handrail.workspace.workspace import OpenPath

MAX_WHOLE_BYTES = 8 * 1024 * 1024
"""Larger files are read a page at a time, whatever is in them."""
_MAX_HASHED_BYTES = 1024 * 1024
"""Larger texts are read a page at a time, unless they changed a moment ago."""
_PDF = b"%PDF-"
_MAX_PDF_PAGES = 500


class ReadArguments(Arguments, frozen=True):
    """The arguments of read."""

    path: Annotated[str, Meta(description="File to read, relative to the workspace, or an @output/… reference.")]
    offset: Annotated[
        int, Meta(description="First line, from 1; negative counts from the end (-200 = the last 200 lines).")
    ] = 1
    limit: Annotated[int, Meta(ge=1, le=10_000, description="Maximum lines to return.", extra={"unit": "lines"})] = (
        2_000
    )


class ReadData(Wire, frozen=True, omit_defaults=False):
    """What the file is."""

    path: str
    size: int
    mtime: datetime | None
    encoding: str | None
    line_ending: str | None
    hash: str
    first_line: int | None


READ = ToolSpec(
    name="read",
    title="Read",
    description=(
        "Read a text file (whole, or a page of lines), a picture, or the kept output of an earlier call. "
        "Lines over 2,000 characters are cut; nextOffset says where the next page begins."
    ),
    arguments=ReadArguments,
    data=ReadData,
    permissions=("fs.read",),
    auto_execute=True,
    plain_arguments=("path",),
    layer="base",
    stage="read",
    intent="read a file or a page of it, a picture, or stored output",
)


def build_read_tool(seen: ReadMarks, outputs: Outputs, *, images: bool = True) -> Tool:
    indexes = LineIndexes()

    def run(context: Context, arguments: ReadArguments) -> Output:
        if arguments.offset == 0:
            raise ToolError("INVALID_ARGUMENT", "offset is 0; lines count from 1, and from -1 backwards.")
        if arguments.path.startswith(OUTPUT):
            return _read_output(outputs, arguments, context.limits.characters)
        with context.workspace.open_file(arguments.path) as opened:
            try:
                return read_file(opened, context, arguments)
            except OSError as error:
                raise to_tool_error(error, arguments.path) from None

    def read_file(opened: OpenPath, context: Context, arguments: ReadArguments) -> Output:
        budget, size = context.limits.characters, opened.status.st_size
        is_whole = size <= MAX_WHOLE_BYTES and not _has_pages(opened)
        contents = read_contents(opened.descriptor, size, MAX_WHOLE_BYTES) if is_whole else None
        if contents is None or contents.data is None:
            return _read_large(opened, arguments, budget, indexes, seen)
        digest = contents.hash
        output = _read_whole(opened, contents.data, digest, arguments, budget, images=images)
        seen.set_mark(opened.real, encode_mark(WholeFileMark(digest)))
        return output

    return Tool(READ, run, _declare_touches)


def _declare_touches(arguments: ReadArguments) -> Touches:
    return Touches() if arguments.path.startswith(OUTPUT) else Touches(reads=(arguments.path,))


def _has_pages(opened: OpenPath) -> bool:
    """Whether one page of a file can be read without the rest, and a later change of the rest be told."""
    if opened.status.st_size <= _MAX_HASHED_BYTES or not is_settled(opened.status):
        return False
    sample = os.pread(opened.descriptor, SAMPLE_BYTES, 0)
    encoding = detect_start_encoding(sample)
    is_text = encoding is not None and not encoding.startswith("utf-16")
    return is_text and not find_image_type(sample) and not sample.startswith(_PDF)


def _read_whole(
    opened: OpenPath, data: bytes, digest: str, arguments: ReadArguments, budget: int, *, images: bool
) -> Output:
    kind = find_image_type(data)
    if kind and images:
        return _build_picture(opened, data, digest, kind)
    text = decode_text(data)
    if text is None or data.startswith(_PDF):
        return _read_pdf(opened, data, digest, arguments, budget)
    page = build_whole_page(text.text, arguments.limit, budget) if arguments.offset == 1 else None
    if page is None:
        page = _cut_page(text.text, arguments, budget)
    described = _build_data(opened, digest, text.encoding, text.line_ending, page.first, len(data))
    return _build_output(arguments.path, page, described, text.damaged)


def _read_large(
    opened: OpenPath, arguments: ReadArguments, budget: int, indexes: LineIndexes, seen: ReadMarks
) -> Output:
    status, descriptor = opened.status, opened.descriptor
    encoding = _detect_large_encoding(os.pread(descriptor, SAMPLE_BYTES, 0), arguments.path)
    found = read_large_page(descriptor, status, encoding, arguments.offset, arguments.limit, budget, indexes)
    if found is None:
        raise _build_past_end_error(arguments, indexes.total(status))
    digest = hash_range(descriptor, found.start, found.length)
    seen.set_mark(opened.real, encode_mark(PageMark(identify_content(status) if is_settled(status) else None)))
    identity = f"{digest}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
    first = found.page.first if found.page.first > 0 else None
    described = _build_data(
        opened, sha256(identity.encode()).hexdigest(), encoding, found.line_ending, first, status.st_size
    )
    return _build_output(arguments.path, found.page, described, found.damaged)


def _detect_large_encoding(sample: bytes, path: str) -> Encoding:
    if find_image_type(sample) or sample.startswith(_PDF):
        raise ToolError(
            "LIMIT_EXCEEDED", f"{clip_path(path)} is a picture or PDF over 8 MiB, which is too large to read."
        )
    encoding = detect_start_encoding(sample)
    if encoding is None:
        raise _build_binary_error(path)
    if encoding.startswith("utf-16"):
        message = f"{clip_path(path)} is UTF-16 and over 8 MiB; convert it to UTF-8 to read pages of it."
        raise ToolError("LIMIT_EXCEEDED", message)
    return encoding


def _read_output(outputs: Outputs, arguments: ReadArguments, budget: int) -> Output:
    """Reads rows. A row ends in a newline only if the text does, so that joined pages are the text."""
    descriptor = outputs.open(arguments.path.removeprefix(OUTPUT))
    try:
        size = os.fstat(descriptor).st_size
        page = read_row_page(descriptor, arguments.offset, arguments.limit, budget)
        digest = hash_range(descriptor, 0, size)
    finally:
        os.close(descriptor)
    _check_offset(arguments, page)
    described = ReadData(
        path=arguments.path,
        size=size,
        mtime=None,
        encoding="utf-8",
        line_ending=None,
        hash=digest,
        first_line=page.first,
    )
    return _build_output(arguments.path, page, described, 0)


def _cut_page(text: str, arguments: ReadArguments, budget: int) -> TextPage:
    page = build_text_page(text, arguments.offset, arguments.limit, budget)
    _check_offset(arguments, page)
    return page


def _check_offset(arguments: ReadArguments, page: TextPage) -> None:
    if arguments.offset > max(page.total or 0, 1):
        raise _build_past_end_error(arguments, page.total)


def _build_past_end_error(arguments: ReadArguments, total: int | None) -> ToolError:
    known = f" ({total} lines)" if total is not None else ""
    message = f"offset {arguments.offset} is after the end of {clip_path(arguments.path)}{known}."
    return ToolError("INVALID_ARGUMENT", message)


def _build_data(
    opened: OpenPath, digest: str, encoding: str | None, ending: str | None, first: int | None, size: int
) -> ReadData:
    mtime = datetime.fromtimestamp(opened.status.st_mtime, UTC)
    return ReadData(
        path=opened.real, size=size, mtime=mtime, encoding=encoding, line_ending=ending, hash=digest, first_line=first
    )


def _build_output(path: str, page: TextPage, data: ReadData, damaged: int) -> Output:
    meta: dict[str, Any] = {"returned": page.returned, "total": page.total, "next_offset": page.next_offset}
    if page.total is None:
        meta["total_is_lower_bound"] = True
    more = page.next_offset is not None
    return Output(
        summary=_summarize(path, page),
        content=page.content,
        data=data,
        truncated=more or page.cut > 0,
        meta=meta,
        warnings=_list_warnings(page, damaged),
    )


def _summarize(spelled: str, page: TextPage) -> str:
    path = clip_path(spelled)
    if page.returned == 0:
        return f"{path} is empty"
    if page.first < 0:
        return f"Read {page.returned} of the last {-page.first} lines of {path}"
    last = page.first + page.returned - 1
    of = f" of {page.total}" if page.total is not None else ""
    return f"Read lines {page.first}–{last}{of} of {path}"


def _list_warnings(page: TextPage, damaged: int) -> tuple[str, ...]:
    warnings: list[str] = []
    if page.cut:
        warnings.append(f"{page.cut} lines over 2,000 characters were cut.")
    if damaged:
        warnings.append(f"{damaged} bytes are not valid in the file's encoding and are shown as \ufffd.")
    return tuple(warnings)


def _build_picture(opened: OpenPath, data: bytes, digest: str, kind: str) -> Output:
    path, shown = opened.real, clip_path(opened.real)
    if len(data) > MAX_IMAGE_BYTES:
        raise ToolError("LIMIT_EXCEEDED", f"{shown} is a picture of {len(data)} bytes; the limit is {MAX_IMAGE_BYTES}.")
    content = binascii.b2a_base64(data, newline=False).decode()
    summary = f"{shown} is a picture ({kind}, {len(data)} bytes)"
    return Output(
        summary=summary,
        content=f"{summary}; it is attached.",
        data=_build_data(opened, digest, None, None, None, len(data)),
        attachments=(Attachment(type="image", path=path, mime=kind, content=content),),
    )


def _read_pdf(opened: OpenPath, data: bytes, digest: str, arguments: ReadArguments, budget: int) -> Output:
    if not data.startswith(_PDF):
        raise _build_binary_error(arguments.path)
    page = _cut_page(_extract_pdf_text(data, arguments.path), arguments, budget)
    return _build_output(arguments.path, page, _build_data(opened, digest, None, None, page.first, len(data)), 0)


def _extract_pdf_text(data: bytes, path: str) -> str:
    """The text of the first pages, each under a line with its number."""
    import logging  # noqa: PLC0415  few sessions read a PDF

    try:
        import pypdf  # noqa: PLC0415  an extra
    except ImportError:
        message = f"{clip_path(path)} is a PDF; reading it needs: pip install 'handrail[pdf]'."
        raise ToolError("UNAVAILABLE", message) from None
    # Without a handler it would print problems of the file, with bytes of it.
    logger = logging.getLogger("pypdf")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    try:
        pages = pypdf.PdfReader(io.BytesIO(data)).pages
        texts = [
            f"--- page {number} of {len(pages)} ---\n{page.extract_text()}\n"
            for number, page in enumerate(islice(pages, _MAX_PDF_PAGES), 1)
        ]
    except Exception as error:  # whatever a parser raises over a broken file, the file is at fault
        message = f"{clip_path(path)} is a PDF whose text cannot be read ({type(error).__name__})."
        raise ToolError("BINARY_FILE", message) from None
    if len(pages) > _MAX_PDF_PAGES:
        texts.append(f"--- {len(pages) - _MAX_PDF_PAGES} more pages are not read ---\n")
    return "".join(texts)


def _build_binary_error(path: str) -> ToolError:
    return ToolError("BINARY_FILE", f"{clip_path(path)} is not text. Use a program for its format.")
