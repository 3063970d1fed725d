"""The text of a PDF, page by page. Needs the extra `pdf`."""

import io

from handrail.protocol.error import ToolError

_PAGES = 500


def pdf_text(data: bytes, path: str) -> str:
    """The text of the first pages, each under a line that says which it is."""
    try:
        import pypdf  # noqa: PLC0415  an extra
        from pypdf.errors import PyPdfError  # noqa: PLC0415
    except ImportError:
        raise ToolError("UNAVAILABLE", f"{path} is a PDF; reading it needs: pip install 'handrail[pdf]'.") from None
    try:
        pages = pypdf.PdfReader(io.BytesIO(data)).pages
        shown = min(len(pages), _PAGES)
        texts = [
            f"--- page {number + 1} of {len(pages)} ---\n{pages[number].extract_text()}\n" for number in range(shown)
        ]
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ToolError("BINARY_FILE", f"{path} is a PDF whose text cannot be read ({type(error).__name__}).") from None
    return "".join(texts)
