"""What a command changed in its layer: found, judged by who asks, put by until somebody says yes, and kept."""
