"""Which network an address is of: what one customer of a provider has counts as one."""

from ipaddress import IPv6Address, ip_address

_NETWORK_BITS = 64  # of an IPv6 address: what one customer of a provider has, of which each machine has millions


def network_of(host: str) -> str:
    """Return the same text for all addresses of one customer; `?` for what is no address.

    >>> network_of("192.0.2.1"), network_of("2001:db8::1") == network_of("2001:db8::2"), network_of("me")
    ('192.0.2.1', True, '?')
    """
    try:
        address = ip_address(host)
    except ValueError:
        return "?"
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> (128 - _NETWORK_BITS):x}"
