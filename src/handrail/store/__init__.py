"""What is remembered: the journal of each session, the audit chain, blobs. All of it in the state folder, mode 0600."""
