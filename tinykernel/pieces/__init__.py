"""What a model is put together of: one folder for each stage and each part of a read-out."""
