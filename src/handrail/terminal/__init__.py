"""What a person sees and types on a terminal: permission requests as text, and the answers to them by keys."""
