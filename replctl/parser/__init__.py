"""Text to syntax tree; knows no catalog."""
