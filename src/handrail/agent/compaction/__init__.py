"""Shortens a transcript that fills the model's window: what is measured, what stays, what stands for the rest."""
