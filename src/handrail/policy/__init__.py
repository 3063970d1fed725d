"""Policy: a pure function from a call, facts and rules to a decision that names its rule."""
