"""``lachesis predictor``: train a predictor of worker lifetimes, and say how well it orders."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import (
    INPUT,
    MEASUREMENT,
    OUTPUT,
    AnyTrace,
    ClockSeed,
    Debug,
    Format,
    Json,
    Latency,
    Map,
    Quiet,
)

Alpha = Annotated[
    float,
    Parameter(metavar="X", group=MEASUREMENT, help="Penalty on the weights, above 0."),
]
KindName = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        group=MEASUREMENT,
        help="ridge, counts (needs no text), online (learns as workers return) or "
        "instruction-length (baseline). [default: ridge]",
    ),
]


def train_predictor(
    *traces: AnyTrace,
    output: Annotated[
        str,
        Parameter(("--output", "-o"), metavar="FILE", group=OUTPUT, help="The file to write."),
    ],
    kind: KindName = None,
    alpha: Alpha = 10.0,
    format: Format = None,
    map: Map = None,
    seed: ClockSeed = 0,
    latency: Latency = "paper",
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a predictor to the workers of traces, and write it to a small file."""
    from lachesis.cli.predictor_job import PredictorOptions, execute_training

    execute_training(
        PredictorOptions(traces, format, tuple(map or ()), kind, alpha, seed, latency),
        output=output, json=json, quiet=quiet,
    )  # fmt: skip


def evaluate_predictor(
    *traces: AnyTrace,
    predictor: Annotated[
        str | None,
        Parameter(
            metavar="FILE",
            group=INPUT,
            help="A trained predictor; sessions that it was trained on are left out. Without "
            "it, a kind is evaluated out of fold.",
        ),
    ] = None,
    kind: KindName = None,
    alpha: Alpha = 10.0,
    format: Format = None,
    map: Map = None,
    seed: ClockSeed = 0,
    latency: Latency = "paper",
    json: Json = None,
    plots: Annotated[
        str | None,
        Parameter(
            metavar="DIR",
            group=OUTPUT,
            help="Draw figures like the paper's Figure 7(a) and (b) into a folder.",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say how well scores at the spawn order workers by how long they live."""
    from lachesis.cli.predictor_job import PredictorOptions, execute_evaluation

    execute_evaluation(
        PredictorOptions(traces, format, tuple(map or ()), kind, alpha, seed, latency),
        predictor=predictor, json=json, plots=plots, quiet=quiet,
    )  # fmt: skip
