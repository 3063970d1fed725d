"""What the scripted model says and calls, line by line."""

from handrail.cli.demonstration.sample import BROKEN, MENDED, RUN_ALL, RUN_TESTS
from handrail.models.scripted import Line, Scripted


def scripted_model() -> Scripted:
    """A model that always fixes the sample in the same way."""
    return Scripted(_LINES, name="demo")


_LINES = (
    Line(text="I look around first.", calls=(("ls", {"path": "."}), ("read", {"path": "cart.py"}))),
    Line(text="Now the tests. Running code asks first.", calls=(("exec", {"command": RUN_TESTS}),)),
    Line(
        text="Half a cent is rounded to the even number. Perhaps a setting says so?",
        calls=(("read", {"path": ".env"}),),
    ),
    Line(
        text="Credentials are closed to me, and I do not need them. The bug is in cart.py.",
        calls=(("edit", {"path": "cart.py", "oldText": BROKEN, "newText": MENDED}),),
    ),
    Line(text="The tests once more, and the price list.", calls=(("exec", {"command": RUN_ALL}),)),
    Line(text="round() rounds half to even; cart.py now rounds half up. All tests pass, and prices.txt is new."),
)
