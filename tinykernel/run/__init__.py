"""Programs that run: toolchains, emulators, boards on a line, memory, stack, instructions."""
