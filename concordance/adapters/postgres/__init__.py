"""Postgres: connections, the schema, and one module per group of tables."""
