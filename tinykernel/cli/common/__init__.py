"""What the commands share: options, output, errors, progress, what a model remembers."""
