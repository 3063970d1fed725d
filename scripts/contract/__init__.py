"""The written contract: plays a session, and makes the recorded samples and docs/protocol.md out of it."""
