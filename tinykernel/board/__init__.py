"""Boards on a serial line, emulated or real: commands, recording, monitoring."""
