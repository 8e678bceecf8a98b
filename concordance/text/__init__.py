"""Pure: bytes to text, text to sections, sections to chunks."""
