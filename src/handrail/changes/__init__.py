"""Change sets: changed files on record, applied whole, undone whole."""
