"""Names and addresses by which a machine reaches itself."""

from __future__ import annotations

import ipaddress


def is_here(host: str) -> bool:
    """Whether a Host header names this machine itself."""
    bracketed, closed, _ = host.removeprefix("[").partition("]")
    name = bracketed if closed and host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


def is_loopback(name: str) -> bool:
    """Whether a name or an address is that of this machine to itself."""
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
