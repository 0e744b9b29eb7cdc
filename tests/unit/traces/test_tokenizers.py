"""Counting with a vocabulary from a local file."""

import base64
import json
import sys

import pytest

from lachesis.errors import InputError
from lachesis.traces import ReadOptions, read
from lachesis.traces.token_count import estimate_tokens
from lachesis.traces.tokenizers import load_tokenizer

TOKENS = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" s", b" se", b" sea"]


def ranks(path, tokens=TOKENS):
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens))
    path.write_text("".join(lines))
    return path


def words(path):
    """A `tokenizer.json` that counts words."""
    vocabulary = {"[UNK]": 0, "the": 1, "sea": 2}
    path.write_text(
        json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
        })
    )  # fmt: skip
    return path


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "r50k_base", "p50k_base"])
def test_a_rank_file(tmp_path, name):
    pytest.importorskip("tiktoken")
    tokenizer = load_tokenizer(ranks(tmp_path / f"{name}.tiktoken"))
    assert tokenizer.name == f"tiktoken: {name}.tiktoken"
    assert tokenizer.count_tokens("the sea") == 2
    assert tokenizer.count_tokens("") == 0
    # "hush", a special token's spelling, and half a surrogate pair are plain text.
    assert tokenizer.count_tokens("<|endoftext|>\ud83d") == 14


def test_a_tokenizer_json(tmp_path):
    pytest.importorskip("tokenizers")
    tokenizer = load_tokenizer(words(tmp_path / "tokenizer.json"))
    assert tokenizer.name == "tokenizers: tokenizer.json"
    assert tokenizer.count_tokens("the sea the gulls \ud83d") == 5


@pytest.mark.parametrize("library", ["tiktoken", "tokenizers"])
def test_a_library_that_is_not_there(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    file = (
        ranks(tmp_path / "o200k_base.tiktoken")
        if library == "tiktoken"
        else words(tmp_path / "tokenizer.json")
    )
    with pytest.raises(InputError, match=rf"needs the library {library}, .*lachesis\[tokenizers\]"):
        load_tokenizer(file)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "o200k_base.tiktoken",
            "dGhl\n",
            r"tiktoken:1: tokenizer, is neither a tokenizer.json nor",
        ),
        ("o200k_base.tiktoken", "% 1\n", r"tiktoken:1: tokenizer, is neither"),
        ("o200k_base.tiktoken", "dGhl 0\ndGhl 1\n", r":2: tokenizer, must be a new token"),
        ("o200k_base.tiktoken", "dGhl 0\n", "must hold a token for every single byte"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        load_tokenizer(tmp_path / name)


def test_a_rank_file_needs_a_known_name(tmp_path):
    with pytest.raises(InputError, match=r"must be named after its encoding \(r50k_base"):
        load_tokenizer(ranks(tmp_path / "mine.tiktoken"))


def test_a_rank_twice(tmp_path):
    file = ranks(tmp_path / "o200k_base.tiktoken")
    file.write_text(file.read_text() + "bXVtYmxl 0\n")
    with pytest.raises(InputError, match="gives one rank twice"):
        load_tokenizer(file)


def test_no_tokenizer_json(tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(InputError, match=r"is no tokenizer\.json"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"gone\.json: tokenizer, cannot be read: No such file"):
        load_tokenizer(tmp_path / "gone.json")


def test_texts_are_counted_with_it(fixtures_dir):
    bfcl = fixtures_dir / "traces" / "bfcl"
    options = ReadOptions(count_tokens=lambda text: len(text.split()), tokenizer="words")
    trace = read([bfcl], options=options)
    assert trace.tokenizer == "words"
    assert trace.requests["output_tokens"].to_pylist() == [2, 2, 1]
    assert read([bfcl]).requests["output_tokens"].to_pylist()[2] == estimate_tokens(
        "find(item='salt')"
    )
