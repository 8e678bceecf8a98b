"""Prefect flows: the order of the steps, and the policy on failure."""
