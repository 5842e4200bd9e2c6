"""Fuzzing: ``make fuzz``, or ``python -m tests.fuzz --help``."""
