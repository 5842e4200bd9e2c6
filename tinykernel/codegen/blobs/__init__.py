"""A model as data: its tables in one structure, as a file that a program loads."""
