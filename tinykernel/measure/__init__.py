"""Measuring on real compilers and emulators: footprint, stack, instruction counts."""
