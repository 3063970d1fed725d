"""Version numbers of handrail."""

VERSION = "0.1.0"
PROTOCOL_VERSION = "1.0.0"
