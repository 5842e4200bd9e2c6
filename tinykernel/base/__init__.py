"""What every part may use: errors, text, files, progress, compiled code, codes of text, options."""
