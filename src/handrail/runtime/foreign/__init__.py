"""Tools of other servers: how they are named, checked, judged by what was seen of them before, and called."""
