"""Commands that talk to a board over a serial line."""
