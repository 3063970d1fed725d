"""The version of the package and of the wire contract."""

VERSION = "0.1.0"
PROTOCOL_VERSION = "1.0.0"
