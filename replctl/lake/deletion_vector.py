"""Write deletion vectors: the positions of the deleted rows of a data file.

Delta's protocol, sections "Deletion Vectors" and "Deletion Vector Format", and the portable format
of Roaring bitmaps (RoaringFormatSpec).
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID, uuid4
from zlib import crc32

from replctl.lake.delta_actions import BASE85, VectorStorage

_FORMAT_VERSION = b"\x01"
#: The first bytes of a serialized vector, and of a bitmap without run containers.
_MAGIC, _COOKIE = 1681511377, 12346
#: A container with at most this number of positions lists them.  A larger one has 2^16 bits.
_MOST_LISTED = 4096


def write_vector(folder: str, positions: Collection[int]) -> tuple[str, dict[str, Any]]:
    """Write a file with one deletion vector to a local folder.

    Args:
        positions: the positions of the deleted rows, from 0 to 2^32 - 1; at least one.

    Returns:
        the path of the file, relative to the folder, and its descriptor in the log.

    Raises:
        OSError: the file cannot be written.
    """
    vector, id_ = serialized(sorted(positions)), uuid4()
    path = f"deletion_vector_{id_}.bin"
    content = struct.pack(">i", len(vector)) + vector + struct.pack(">I", crc32(vector))
    with open(os.path.join(folder, path), "xb") as file:
        file.write(_FORMAT_VERSION + content)
    return path, {
        "storageType": VectorStorage.UUID,
        "pathOrInlineDv": _base85(id_),
        "offset": len(_FORMAT_VERSION),
        "sizeInBytes": len(vector),
        "cardinality": len(positions),
    }


def serialized(positions: Sequence[int]) -> bytes:
    """Return ascending positions as an array of one Roaring bitmap."""
    by_key: defaultdict[int, list[int]] = defaultdict(list)
    for position in positions:
        by_key[position >> 16].append(position & 0xFFFF)
    containers = [_container(lows) for lows in by_key.values()]
    head = b"".join(struct.pack("<HH", key, len(lows) - 1) for key, lows in by_key.items())
    start = 8 + len(head) + 4 * len(containers)
    offsets = b""
    for container in containers:
        offsets += struct.pack("<I", start)
        start += len(container)
    bitmap = struct.pack("<II", _COOKIE, len(containers)) + head + offsets + b"".join(containers)
    return struct.pack("<iqi", _MAGIC, 1, 0) + bitmap


def _container(lows: Sequence[int]) -> bytes:
    """Return the positions of one container: a list, or 2^16 bits."""
    if len(lows) <= _MOST_LISTED:
        return struct.pack(f"<{len(lows)}H", *lows)
    bits = bytearray(8192)
    for low in lows:
        bits[low >> 3] |= 1 << (low & 7)
    return bytes(bits)


def _base85(id_: UUID) -> str:
    """Encode a UUID in base 85 as in ZeroMQ's RFC 32: four bytes become five characters."""
    letters = list(BASE85)
    numbers = struct.unpack(">4I", id_.bytes)
    return "".join(
        letters[number // 85**place % 85] for number in numbers for place in range(4, -1, -1)
    )
