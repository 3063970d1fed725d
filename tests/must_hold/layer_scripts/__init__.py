"""Shell scripts by the hundred, made by their seeds, and what each leaves behind: run directly, and through a layer."""
