"""Persistent state: journals, approvals, the audit, blobs. All files are private to the user (mode 0600)."""
