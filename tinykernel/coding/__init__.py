"""Text and missing values of tables as numbers, in files and in frames of pandas or polars."""
