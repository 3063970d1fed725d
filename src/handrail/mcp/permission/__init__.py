"""How a person is asked through a client: by a form, by another round of the call, or by waiting for them."""
