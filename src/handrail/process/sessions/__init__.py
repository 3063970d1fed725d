"""Process sessions: commands that outlive the call that started them, each with a keeper of its own."""
