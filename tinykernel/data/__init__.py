"""Data sets from files: tables, recordings and pictures."""
