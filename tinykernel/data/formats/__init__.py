"""A reader for each format of recordings."""
