"""A trained predictor as a file: JSON that holds numbers and names, no code.

``docs/predictor.md`` defines every field. Reading runs nothing that the file brings along, checks
the digest over its content, and then every field.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.predict.predictor import FeatureSettings, Kind, TrainedOn, TrainedPredictor
from lachesis.predict.training import check_alpha

Floats = NDArray[np.float64]

FORMAT: Final = "lachesis-predictor"
VERSION: Final = 1
# Two numbers for each of the 2**20 buckets would take less.
_BYTES_MAX: Final = 256 * 2**20


class _Sparse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values at ascending indices; elsewhere the value that the field's description gives."""

    index: list[int]
    value: list[float]


class _Online(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workers: int
    intercept_variance: float
    variances: _Sparse


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    kind: str
    features: FeatureSettings
    alpha: float
    intercept: float
    weights: _Sparse
    online: _Online | None
    trained_on: TrainedOn
    sha256: str


def save(predictor: TrainedPredictor, path: str | Path) -> None:
    """Write a predictor to a file, whole or not at all; equal predictors give equal bytes.

    Raises:
        InputError: the place cannot be written.

    Example:
        >>> import tempfile
        >>> from lachesis.predict.training import untrained
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(untrained(Kind.LENGTH), folder + "/length.json")
        ...     load(folder + "/length.json")
        TrainedPredictor('instruction-length', 0 workers)
    """
    # A field a line: people can look at it, and arrays do not fill the screen.
    lines = [f"{_json(name)}: {_json(value)}" for name, value in _content(predictor).items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    target = Path(path)
    try:
        handle, scratch = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            mask = os.umask(0)
            os.umask(mask)
            Path(scratch).chmod(0o666 & ~mask)
            Path(scratch).replace(target)
        finally:
            Path(scratch).unlink(missing_ok=True)
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault


def load(path: str | Path) -> TrainedPredictor:
    """Read what `save` wrote.

    Raises:
        InputError: no such file, another format or version, a damaged file, or a field that
            breaks a rule.
    """
    try:
        if Path(path).stat().st_size > _BYTES_MAX:
            raise InputError(f"is no predictor: above {_BYTES_MAX} bytes", path=path)
        raw = Path(path).read_bytes()
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=path) from fault
    try:
        document = _decode(raw)
        return _predictor(document)
    except InputError as fault:
        raise fault.located(path) from fault


def _content(predictor: TrainedPredictor) -> dict[str, Any]:
    fixed, learning = predictor.engine.linear_state(), predictor.engine.online_state()
    online = None
    if learning is not None:
        (intercept, variance), weights, variances, workers = learning
        online = {
            "workers": workers,
            "intercept_variance": variance,
            "variances": _sparse(variances, 1.0 / predictor.alpha),
        }
    else:
        assert fixed is not None, "Invariant: weights are fixed or learn"
        intercept, weights = fixed
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": str(predictor.kind),
        "features": msgspec.to_builtins(predictor.features),
        "alpha": predictor.alpha,
        "intercept": intercept,
        "weights": _sparse(weights, 0.0),
        "online": online,
        "trained_on": msgspec.to_builtins(predictor.trained_on),
    }
    return {**content, "sha256": _digest(content)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _digest(content: dict[str, Any]) -> str:
    """Over everything but itself, keys sorted, so that layout does not count."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode("ascii")).hexdigest()


def _decode(raw: bytes) -> _Document:
    try:
        content = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"is no predictor: not valid JSON ({fault})") from fault
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'is no predictor: its format must be "{FORMAT}"')
    if content.get("version") != VERSION:
        raise InputError(
            f"this build reads version {VERSION}", field="version", value=content.get("version")
        )
    if content.get("sha256") != _digest(content):
        raise InputError("damaged: does not match the content", field="sha256")
    try:
        return msgspec.convert(content, _Document, strict=True)
    except msgspec.ValidationError as fault:
        raise InputError(str(fault)) from fault


def _predictor(document: _Document) -> TrainedPredictor:
    kind = Kind.parse(document.kind)
    check_alpha(document.alpha)
    features = document.features
    if features.words != FeatureSettings.of(kind).words:
        raise InputError(
            f"kind {kind} reads otherwise", field="features.words", value=features.words
        )
    spec = features.spec()
    weights = _dense("weights", document.weights, spec.width, 0.0)
    _check_finite("intercept", document.intercept)
    online = document.online
    if (online is not None) != (kind is Kind.ONLINE):
        raise InputError("must be there for kind online, and for no other", field="online")
    if online is None:
        engine = _engine.Predictor.linear(spec, document.intercept, weights)
    else:
        variances = _dense("online.variances", online.variances, spec.width, 1.0 / document.alpha)
        _check_finite("online.intercept_variance", online.intercept_variance)
        if online.intercept_variance < 0 or (variances < 0).any():
            raise InputError("must be at least 0", field="online.variances")
        if not 0 <= online.workers < 2**63:
            raise InputError("must be a count", field="online.workers", value=online.workers)
        intercept = (document.intercept, online.intercept_variance)
        engine = _engine.Predictor.online_from(spec, intercept, weights, variances, online.workers)
    return TrainedPredictor(
        kind, features, engine, alpha=document.alpha, trained_on=document.trained_on
    )


def _sparse(values: Floats, elsewhere: float) -> dict[str, Any]:
    index = np.flatnonzero(values != elsewhere)
    return {"index": index.tolist(), "value": values[index].tolist()}


def _dense(field: str, sparse: _Sparse, width: int, elsewhere: float) -> Floats:
    if len(sparse.index) != len(sparse.value):
        raise InputError("index and value must be of one length", field=field)
    previous = -1
    for index in sparse.index:
        if not previous < index < width:
            raise InputError(
                f"must ascend from 0 and lie below {width}", field=f"{field}.index", value=index
            )
        previous = index
    for value in sparse.value:
        _check_finite(f"{field}.value", value)
    dense = np.full(width, elsewhere)
    dense[sparse.index] = sparse.value
    return dense


def _check_finite(field: str, value: float) -> None:
    if not math.isfinite(value):
        raise InputError("must be finite", field=field, value=value)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
