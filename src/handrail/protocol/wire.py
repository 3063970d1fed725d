"""The two ways a struct is spelled on the wire."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

Json = Any
"""A JSON value. Its shape is the sender's; structs say what is known."""

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A moment with its offset from UTC, as RFC 3339 spells it."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """Inside `data`, `meta`, arguments and `permission_request`: camelCase, absent when not given."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls and results: snake_case, every field always present."""


encode = msgspec.json.Encoder().encode
"""The one JSON encoder of the wire."""
