"""Search: ripgrep where there is one, Python with equal results where there is none."""
