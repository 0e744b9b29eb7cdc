"""Unique names of sessions, for many millions of them: eight bytes a name, a bit a numbered one."""

from __future__ import annotations

import re
from array import array
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_RECENT = 65_536
_CHUNK = 65_536
_NUMBERED = re.compile(r"request-(0|[1-9][0-9]{0,17})")


class SessionNames:
    """Which names are taken. A name that comes again gets a suffix: ``a``, ``a~2``, ``a~3``.

    Names are kept as 64-bit hashes; those of lone requests, ``request-17``, as bits. Two names with
    one hash, which even among a hundred million is not expected, would cost the second a suffix.

    Example:
        >>> names = SessionNames()
        >>> [names.unique(name) for name in ("a", "a", "request-7")]
        ['a', 'a~2', 'request-7']
        >>> names.numbered(np.array([6, 7, 8]))
        ['request-6', 'request-7~2', 'request-8']
    """

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._frozen: NDArray[np.uint64] = np.zeros(0, np.uint64)  # sorted
        self._times: dict[int, int] = {}  # how often a name was asked for, where more than once
        self._numbers = _NumberSet()
        self._taken_since_mark: array[int] | None = None
        self._times_at_mark: dict[int, int] = {}

    def unique(self, name: str) -> str:
        """`name`, or ``name~2``, ``name~3``, … where it is taken; takes it."""
        if self._take(name):
            return name
        key = name_key(name)
        while True:
            times = self._times.get(key, 1)
            if self._taken_since_mark is not None:
                self._times_at_mark.setdefault(key, times)
            self._times[key] = times + 1
            candidate = f"{name}~{times + 1}"
            if self._take(candidate):
                return candidate

    def numbered(self, numbers: NDArray[np.int64]) -> list[str]:
        """Unique names of the form ``request-N`` for ascending `numbers`."""
        taken_before = self._numbers.add(numbers)
        names = [f"request-{number}" for number in numbers.tolist()]
        for index in np.flatnonzero(taken_before).tolist():
            names[index] = self.unique(names[index])
        return names

    def mark(self) -> None:
        """From here on names can be taken back."""
        self._taken_since_mark = array("Q")
        self._times_at_mark = {}
        self._numbers.mark()

    def take_back(self) -> None:
        """Free every name that was taken since the mark."""
        assert self._taken_since_mark is not None, "Invariant: a mark was set"
        gone = np.frombuffer(self._taken_since_mark, np.uint64)
        self._recent.difference_update(gone.tolist())
        self._frozen = self._frozen[np.isin(self._frozen, gone, invert=True)]
        for key, times in self._times_at_mark.items():
            self._times[key] = times
        self._numbers.take_back()
        self.mark()

    def _take(self, name: str) -> bool:
        """Take a name; whether it was free."""
        if name.startswith("request-") and (match := _NUMBERED.fullmatch(name)) is not None:
            return self._numbers.add_one(int(match[1]))
        key = name_key(name)
        if key in self._recent:
            return False
        frozen = self._frozen
        if len(frozen):
            place = int(frozen.searchsorted(np.uint64(key)))
            if place < len(frozen) and int(frozen[place]) == key:
                return False
        self._recent.add(key)
        if self._taken_since_mark is not None:
            self._taken_since_mark.append(key)
        if len(self._recent) >= max(_RECENT, len(frozen) // 8):
            recent = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._frozen = np.concatenate([frozen, recent])
            self._frozen.sort()
            self._recent.clear()
        return True


class _NumberSet:
    """A set of numbers from 0, in chunks of bits; the chunk used last is unpacked."""

    def __init__(self) -> None:
        self._chunks: dict[int, NDArray[np.uint8]] = {}
        self._open = -1
        self._bytes = bytearray(_CHUNK)  # of the open chunk; faster than numpy for one number
        self._bits: NDArray[np.uint8] = np.frombuffer(self._bytes, np.uint8)
        self._at_mark: dict[int, NDArray[np.uint8] | None] = {}

    def add(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Add ascending numbers; for each whether it was there before."""
        there = np.zeros(len(numbers), np.bool_)
        chunks = numbers // _CHUNK
        starts = np.flatnonzero(np.diff(chunks, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
            self._turn_to(int(chunks[start]))
            places = numbers[start:end] % _CHUNK
            there[start:end] = self._bits[places]
            self._bits[places] = 1
        return there

    def add_one(self, number: int) -> bool:
        """Add a number; whether it was new."""
        chunk, place = divmod(number, _CHUNK)
        if chunk != self._open:
            self._turn_to(chunk)
        new = not self._bytes[place]
        self._bytes[place] = 1
        return new

    def mark(self) -> None:
        """From here on numbers can be taken back."""
        self._close()
        self._at_mark = {}

    def take_back(self) -> None:
        """Take out what was added since the mark."""
        self._close()
        for chunk, packed in self._at_mark.items():
            if packed is None:
                self._chunks.pop(chunk, None)
            else:
                self._chunks[chunk] = packed

    def _turn_to(self, chunk: int) -> None:
        if chunk == self._open:
            return
        self._close()
        packed = self._chunks.get(chunk)
        self._at_mark.setdefault(chunk, packed)
        self._bits[:] = 0 if packed is None else np.unpackbits(packed)
        self._open = chunk

    def _close(self) -> None:
        if self._open >= 0:
            self._chunks[self._open] = np.packbits(self._bits)
            self._open = -1


def name_key(name: str) -> int:
    """A 64-bit hash of a name, the same in every process."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
