"""Prefect tasks: thin adapters with retries, time-outs and logging around the steps of `Index`."""
