"""The server over streamable HTTP, on the official SDK."""
