"""The names at the top of an OLE file, read with little memory whatever is in it."""

import struct

_OLE_HEADER_BYTES = 512
_SECTOR_SHIFTS = {9, 12}
_END_OF_CHAIN = 0xFFFFFFFA  # and above: no sector
_OLE_ENTRY_BYTES = 128
_NO_SECTOR = 0xFFFFFFFF
_MAX_OLE_ENTRIES = 4_096


def list_ole_names(body: bytes) -> set[str]:
    """Return the names of the streams and storages at the top of an OLE file; fewer if it is damaged.

    Only the first 4,096 entries of its directory are looked at, and each once: chains and trees may be cyclic.
    """
    directory = _read_ole_directory(body)
    if len(directory) < _OLE_ENTRY_BYTES:
        return set()
    names: set[str] = set()
    seen: set[int] = set()
    waiting = [_read_uint32(directory, 0x4C)]  # the root's child; its siblings hang below it as a tree
    while waiting:
        entry = waiting.pop()
        at = entry * _OLE_ENTRY_BYTES
        if entry in seen or at + _OLE_ENTRY_BYTES > len(directory):
            continue
        seen.add(entry)
        length = int.from_bytes(directory[at + 64 : at + 66], "little")
        names.add(directory[at : at + max(0, min(length, 64) - 2)].decode("utf-16-le", "replace"))
        waiting += [_read_uint32(directory, at + 0x44), _read_uint32(directory, at + 0x48)]
    return names


def _read_ole_directory(body: bytes) -> bytes:
    """Return the directory, as far as its chain of sectors leads."""
    if len(body) < _OLE_HEADER_BYTES or int.from_bytes(body[0x1E:0x20], "little") not in _SECTOR_SHIFTS:
        return b""
    size = 1 << int.from_bytes(body[0x1E:0x20], "little")
    sector = _read_uint32(body, 0x30)
    found: list[bytes] = []
    seen: set[int] = set()
    while sector < _END_OF_CHAIN and sector not in seen and len(found) * size < _MAX_OLE_ENTRIES * _OLE_ENTRY_BYTES:
        seen.add(sector)
        found.append(body[(sector + 1) * size : (sector + 2) * size])
        sector = _next_sector(body, size, sector)
    return b"".join(found)


def _next_sector(body: bytes, size: int, sector: int) -> int:
    """Return which sector follows in a chain, by the part of the table that the header itself leads to."""
    page, place = divmod(sector, size // 4)
    if page >= 109:  # a directory that far behind in a large file: what was read of it must do
        return _NO_SECTOR
    at = (_read_uint32(body, 0x4C + 4 * page) + 1) * size + 4 * place
    return _read_uint32(body, at) if at + 4 <= len(body) else _NO_SECTOR


def _read_uint32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<L", data, at)[0])
