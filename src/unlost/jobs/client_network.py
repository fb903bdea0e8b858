"""Client networks: all IP addresses that one customer of a provider controls count as one client."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_SITE_BITS = {4: 24, 6: 56}  # unit for limits of unconfirmed orders: a small provider, or a household
_WIDE_BITS = 40  # prefix of an IPv6 address that a hosting provider assigns to one customer
_NETWORK_BITS = 64  # prefix of an IPv6 address that one customer has at least; a machine can use any address in it


def client_network(host: str) -> str:
    """Return a key that is equal for all addresses of one customer, or `?` if `host` is not an IP address.

    >>> client_network("192.0.2.1"), client_network("2001:db8::1") == client_network("2001:db8::2"),
    client_network("me")
    ('192.0.2.1', True, '?')
    """
    address = _parse_ip(host)
    if address is None:
        return "?"
    return str(address) if isinstance(address, IPv4Address) else f"{int(address) >> (128 - _NETWORK_BITS):x}"


def wider_networks(host: str) -> tuple[str, str]:
    """Return the IPv4 /24 or IPv6 /56 of an address, and its IPv6 /40 (empty for IPv4).

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
