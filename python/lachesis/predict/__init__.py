"""How long will a worker live? Scores at the spawn, read only for their order.

    trace -> worker table -> features -> predictor -> scores

`train` fits a predictor, `save` and `load` keep it in a small file, `evaluate` says how well it
orders workers that it never saw, and `segment_scores` gives a simulation one score a worker
segment, out of fold. Training of the kinds `ridge` and `counts` needs scikit-learn, nothing else
does. ``docs/predictor.md`` defines features, file and figures.

Example:
    >>> from lachesis.predict import Kind, train
    >>> from lachesis.traces import open_trace
    >>> predictor = train(open_trace("terminal-bench"), Kind.ONLINE)
    >>> records = SpawnRecords(
    ...     instruction=["State the exit code.", "Rebuild the project from scratch."],
    ...     context=[None, None],
    ...     instruction_tokens=[None, None],
    ...     context_tokens=[300, 300],
    ...     tools=[["shell"], ["shell"]],
    ...     position=[0, 1],
    ... )
    >>> short, long = predictor.score(records)
    >>> bool(short < long)
    True
"""

from lachesis.predict.evaluation import Evaluation, evaluate, evaluate_scores
from lachesis.predict.file_format import load, save
from lachesis.predict.out_of_fold import (
    out_of_fold_scores,
    segment_scores,
    true_lifetimes,
)
from lachesis.predict.predictor import FeatureSettings, Kind, TrainedPredictor
from lachesis.predict.spawn_records import SpawnRecords
from lachesis.predict.training import train
from lachesis.predict.worker_table import WorkerTable, worker_table

__all__ = [
    "Evaluation",
    "FeatureSettings",
    "Kind",
    "SpawnRecords",
    "TrainedPredictor",
    "WorkerTable",
    "evaluate",
    "evaluate_scores",
    "load",
    "out_of_fold_scores",
    "save",
    "segment_scores",
    "train",
    "true_lifetimes",
    "worker_table",
]
