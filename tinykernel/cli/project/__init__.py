"""Commands about an exported project."""
