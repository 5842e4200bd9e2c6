"""Boards that answer on a serial line: emulated or real, asked, recorded from and watched."""
