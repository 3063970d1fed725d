"""What the scripted model says and calls, line by line."""

from handrail.cli.demonstration.sample import BROKEN, MENDED, RUN_ALL, RUN_TESTS
from handrail.models.scripted import ScriptedModel, ScriptedReply


def build_scripted_model() -> ScriptedModel:
    """A model that always fixes the sample in the same way."""
    return ScriptedModel(_LINES, name="demo")


_LINES = (
    ScriptedReply(text="I look around first.", calls=(("ls", {"path": "."}), ("read", {"path": "cart.py"}))),
    ScriptedReply(text="Now the tests. Running code asks first.", calls=(("exec", {"command": RUN_TESTS}),)),
    ScriptedReply(
        text="Half a cent is rounded to the even number. Perhaps a setting says so?",
        calls=(("read", {"path": ".env"}),),
    ),
    ScriptedReply(
        text="Credentials are closed to me, and I do not need them. The bug is in cart.py.",
        calls=(("edit", {"path": "cart.py", "oldText": BROKEN, "newText": MENDED}),),
    ),
    ScriptedReply(text="The tests once more, and the price list.", calls=(("exec", {"command": RUN_ALL}),)),
    ScriptedReply(
        text="round() rounds half to even; cart.py now rounds half up. All tests pass, and prices.txt is new."
    ),
)
