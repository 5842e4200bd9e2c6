"""What a newcomer meets stays short: the limits are what was reached, and only go down."""

from __future__ import annotations

from benchmarks.counts import lines_of_cli, options_by_command, parameters

OPTIONS_OF_TRAIN, OPTIONS_OF_OTHERS, OPTIONS = 22, 11, 124
PARAMETERS = 18
LINES_OF_CLI = 6500


def test_the_command_line_stays_small() -> None:
    """One train had 49 options and all commands 200; a user needs a dozen."""
    counts = options_by_command()
    assert sum(counts.values()) <= OPTIONS
    assert counts.pop("train") <= OPTIONS_OF_TRAIN
    assert max(counts.values()) <= OPTIONS_OF_OTHERS
    assert lines_of_cli() <= LINES_OF_CLI


def test_estimators_have_few_parameters() -> None:
    """A classifier had 29; rarer ones are entries of `options`."""
    assert max(parameters().values()) <= PARAMETERS
