"""Zstandard files, read as a stream that knows whether it ended where it should."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import zstandard

_CHUNK_BYTES = 1 << 16


class ZstdStream(io.RawIOBase):
    """The decompressed bytes of a Zstandard file of one frame or several, one after the other.

    Raises:
        EOFError: on reading, where the file ends in the middle of a frame.
        zstandard.ZstdError: on reading, where the bytes are no valid frame.
    """

    def __init__(self, raw: BinaryIO) -> None:
        """Take over `raw`, which `close` closes."""
        super().__init__()
        self._raw = raw
        self._frame: Any = None  # None between frames
        self._ready = memoryview(b"")
        self._compressed = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any writable buffer
        """Fill `buffer` as far as one piece goes; 0 at the end."""
        while not self._ready:
            if not self._compressed:
                self._compressed = self._raw.read(_CHUNK_BYTES)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("ends in the middle of a Zstandard frame")
                return 0
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._ready = memoryview(self._frame.decompress(self._compressed))
            self._compressed = b""
            if self._frame.eof:
                self._compressed = self._frame.unused_data
                self._frame = None
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def close(self) -> None:
        """Close the file beneath."""
        self._raw.close()
        super().close()
