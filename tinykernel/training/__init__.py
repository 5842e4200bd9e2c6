"""The trainer: phase windows, diagonals and ternary weights learned together by gradient."""
