"""Parse SQL text to syntax trees, without a catalog."""
