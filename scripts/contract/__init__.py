"""The written contract: plays a session, and makes the recorded samples and docs/reference/protocol.md out of it."""
