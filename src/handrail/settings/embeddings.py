"""The endpoint of a model that turns texts into vectors."""

from typing import Annotated

import msgspec
from msgspec import Meta


class Embeddings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model behind the OpenAI wire."""

    address: Annotated[str, Meta(pattern=r"\Ahttps?://[!-~]{1,500}\Z")]
    """The part before `/embeddings`, such as `http://127.0.0.1:11434/v1`."""
    model: Annotated[str, Meta(pattern=r"\A[!-~]{1,200}\Z")]
