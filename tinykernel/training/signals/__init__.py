"""Training of windows of signals."""
