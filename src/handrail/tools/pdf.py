"""The text of a PDF, page by page. Needs the extra `pdf`."""

import io
import logging
from itertools import islice

from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path

_MAX_PAGES = 500
_SILENCE = logging.NullHandler()


def extract_pdf_text(data: bytes, path: str) -> str:
    """The text of the first pages, each under a line that says which it is."""
    try:
        import pypdf  # noqa: PLC0415  an extra
    except ImportError:
        message = f"{clip_path(path)} is a PDF; reading it needs: pip install 'handrail[pdf]'."
        raise ToolError("UNAVAILABLE", message) from None
    # It would print what it finds wrong with a file, bytes of it included.
    logging.getLogger("pypdf").addHandler(_SILENCE)
    try:
        pages = pypdf.PdfReader(io.BytesIO(data)).pages
        texts = [
            f"--- page {number} of {len(pages)} ---\n{page.extract_text()}\n"
            for number, page in enumerate(islice(pages, _MAX_PAGES), 1)
        ]
    except Exception as error:  # whatever a parser raises over a broken file, the file is at fault
        message = f"{clip_path(path)} is a PDF whose text cannot be read ({type(error).__name__})."
        raise ToolError("BINARY_FILE", message) from None
    if len(pages) > _MAX_PAGES:
        texts.append(f"--- {len(pages) - _MAX_PAGES} more pages are not read ---\n")
    return "".join(texts)
