"""Pure: the arithmetic of rankings, fusion and relevance."""
