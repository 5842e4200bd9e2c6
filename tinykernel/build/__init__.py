"""From sources to a running program: compilers, programs, emulated boards."""
