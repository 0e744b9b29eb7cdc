"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest

_SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "samples"


@pytest.fixture(scope="session")
def samples_dir() -> Path:
    """Folder of real agent records that lie beside the project and are not part of it."""
    if not _SAMPLES.is_dir():
        if os.environ.get("LACHESIS_REQUIRE_SAMPLES"):
            pytest.fail(f"LACHESIS_REQUIRE_SAMPLES is set, but there are no records at {_SAMPLES}")
        pytest.skip(f"no real records at {_SAMPLES}")
    return _SAMPLES


@pytest.fixture(scope="session")
def fixtures_dir() -> Path:
    """Folder of the project's own small records."""
    return Path(__file__).resolve().parent / "fixtures"
