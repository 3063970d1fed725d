"""Policy: a pure function from the facts of a call to a decision that names its rule."""
