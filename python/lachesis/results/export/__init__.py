"""Exports of traces and replays for other simulators (``docs/export.md``)."""

from lachesis.results.export.arrivals import RequestTimes, request_times
from lachesis.results.export.flash_device import FlashTotals, write_flash_trace
from lachesis.results.export.formats import (
    ExportFormat,
    block_tokens_of,
    check_options,
    choose_format,
)
from lachesis.results.export.matching import Matching
from lachesis.results.export.oracle_general import BlockStream, write_oracle_general
from lachesis.results.export.request_files import write_requests
from lachesis.results.export.requests import ExportedRequest, exported_requests

__all__ = [
    "BlockStream",
    "ExportFormat",
    "ExportedRequest",
    "FlashTotals",
    "Matching",
    "RequestTimes",
    "block_tokens_of",
    "check_options",
    "choose_format",
    "exported_requests",
    "request_times",
    "write_flash_trace",
    "write_oracle_general",
    "write_requests",
]
