"""What one simple command does, judged by its program, its options and its operands."""
