"""What only the training of values has."""
