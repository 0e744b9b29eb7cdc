"""From replays to results: the JSON of a run with its provenance, and files written whole."""

from lachesis.results.document import run_document, run_schema, to_json
from lachesis.results.files import check_output, replaced, write_text

__all__ = ["check_output", "replaced", "run_document", "run_schema", "to_json", "write_text"]
