"""The text of a PDF, page by page. Needs the extra `pdf`."""

import io
import logging
from itertools import islice

from handrail.protocol.error import ToolError
from handrail.workspace.errors import clipped

_PAGES = 500
_SILENCE = logging.NullHandler()


def pdf_text(data: bytes, path: str) -> str:
    """The text of the first pages, each under a line that says which it is."""
    try:
        import pypdf  # noqa: PLC0415  an extra
    except ImportError:
        message = f"{clipped(path)} is a PDF; reading it needs: pip install 'handrail[pdf]'."
        raise ToolError("UNAVAILABLE", message) from None
    # It would print what it finds wrong with a file, bytes of it included.
    logging.getLogger("pypdf").addHandler(_SILENCE)
    try:
        pages = pypdf.PdfReader(io.BytesIO(data)).pages
        texts = [
            f"--- page {number} of {len(pages)} ---\n{page.extract_text()}\n"
            for number, page in enumerate(islice(pages, _PAGES), 1)
        ]
    except Exception as error:  # whatever a parser raises over a broken file, the file is at fault
        message = f"{clipped(path)} is a PDF whose text cannot be read ({type(error).__name__})."
        raise ToolError("BINARY_FILE", message) from None
    if len(pages) > _PAGES:
        texts.append(f"--- {len(pages) - _PAGES} more pages are not read ---\n")
    return "".join(texts)
