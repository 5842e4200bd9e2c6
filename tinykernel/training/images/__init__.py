"""Training of images and frames of a camera."""
