"""Limits as settings say them become limits of a command."""

from handrail.sandbox.profile import ResourceLimits, build_limits
from handrail.settings.model import Limits as Chosen


def test_without_any_setting_the_limits_are_the_defaults() -> None:
    assert build_limits(Chosen()) == ResourceLimits()


def test_settings_decide_and_of_time_the_call() -> None:
    chosen = Chosen(exec="2 min", output="64 KB", memory=1 << 30, processes=9, file_size="1.5 MB")
    expected = ResourceLimits(seconds=120, output=1 << 16, memory=1 << 30, processes=9, file_size=3 << 19)
    assert build_limits(chosen) == expected
    assert build_limits(chosen, 1500).seconds == 1.5
