"""What `demo` is made of: a small project, a model that plays a script in it, and what a person would type after it."""
