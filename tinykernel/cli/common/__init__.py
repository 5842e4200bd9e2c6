"""Common parts of the commands: options, output, errors, progress, the memory of a model."""
