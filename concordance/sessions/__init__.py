"""Pure: one reader per session-log format, from bytes to events."""
