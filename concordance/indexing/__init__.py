"""Pure: what there is to do, from stored state and found sources."""
