"""Networks of client IP addresses: all addresses of one customer of a provider count as one."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_SITE_BITS = {4: 24, 6: 56}  # what flooding is bounded by: a small provider, or a household
_WIDE_BITS = 40  # of an IPv6 address: what a hosting provider gives to one customer
_NETWORK_BITS = 64  # of an IPv6 address: what one customer of a provider has, of which each machine has millions


def client_network(host: str) -> str:
    """Return the same text for all addresses of one customer; `?` for what is no address.

    >>> client_network("192.0.2.1"), client_network("2001:db8::1") == client_network("2001:db8::2"), client_network("me")
    ('192.0.2.1', True, '?')
    """
    address = _parse_ip(host)
    if address is None:
        return "?"
    return str(address) if isinstance(address, IPv4Address) else f"{int(address) >> (128 - _NETWORK_BITS):x}"


def wider_networks(host: str) -> tuple[str, str]:
    """Return the IPv4 /24 or IPv6 /56 of an address, and its IPv6 /40; empty for IPv4.

    >>> wider_networks("192.0.2.1"), wider_networks("2001:db8:1234:5678::1"), wider_networks("me")
    (('192.0.2.0/24', ''), ('2001:db8:1234:5600::/56', '2001:db8:1200::/40'), ('?', ''))
    """
    address = _parse_ip(host)
    if address is None:
        return "?", ""
    network = str(ip_network((address, _SITE_BITS[address.version]), strict=False))
    if isinstance(address, IPv4Address):
        return network, ""
    return network, str(ip_network((address, _WIDE_BITS), strict=False))


def _parse_ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
