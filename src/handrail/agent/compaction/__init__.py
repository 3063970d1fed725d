"""Making a talk shorter that fills the model's window: what is measured, what is kept, what stands for the rest."""
