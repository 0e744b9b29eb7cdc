"""Carries out ``lachesis predictor train`` and ``lachesis predictor evaluate``."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_traces
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.predict import Kind, TrainedPredictor, evaluate, load, save, train
from lachesis.predict.training import FITTED, check_alpha, require_scikit_learn
from lachesis.presets import load_latency
from lachesis.report.predictor_plot import draw_evaluation
from lachesis.report.predictor_table import print_evaluation
from lachesis.results import check_output, to_json
from lachesis.results.folders import check_folder
from lachesis.results.predictor_document import evaluation_document, training_document
from lachesis.traces import Trace
from lachesis.traces.opening import is_path


@dataclass(frozen=True)
class PredictorOptions:
    """What both commands are given."""

    traces: tuple[str, ...]
    format: str | None
    map: tuple[str, ...]
    kind: str | None
    alpha: float
    seed: int
    latency: str

    def check(self) -> Kind:
        """The kind, once every option holds.

        Raises:
            InputError: the first that does not.
        """
        if not self.traces:
            raise InputError("name at least one trace: a file, a folder or a corpus", field="TRACE")
        if self.seed < 0:
            raise InputError("must be 0 or more", field="--seed", value=self.seed)
        check_alpha(self.alpha)
        return Kind.RIDGE if self.kind is None else Kind.parse(self.kind)

    def open(self, *, quiet: bool) -> Trace:
        """The trace of all names."""
        return read_traces(self.traces, self.format, self.map, quiet=quiet)

    def corpora(self) -> list[str]:
        """Names of the built-in corpora among the inputs."""
        return [name for name in dict.fromkeys(self.traces) if not is_path(name)]

    def words(self, verb: str) -> list[str]:
        """The arguments that decide the result."""
        words = ["lachesis", "predictor", verb, *self.traces]
        if self.format is not None:
            words += ["--format", self.format]
        for pair in self.map:
            words += ["--map", pair]
        if self.latency != "paper":
            words += ["--latency", self.latency]
        return [*words, "--seed", str(self.seed)]


def execute_training(
    options: PredictorOptions, *, output: str, json: str | None, quiet: bool
) -> None:
    """Read, train, write and report.

    Raises:
        InputError: anything in the arguments or the traces that breaks a rule.
    """
    check_json(json, options.traces, output=output)
    check_output(output)
    kind = options.check()
    if kind in FITTED:
        require_scikit_learn()
    latency = load_latency(options.latency)
    trace = options.open(quiet=quiet)
    with waiting("training", quiet=quiet):
        predictor = train(trace, kind, alpha=options.alpha, latency=latency, seed=options.seed)
    save(predictor, output)
    command = [*options.words("train"), "--kind", str(kind), "--alpha", f"{options.alpha:g}"]
    document = training_document(
        trace, predictor, output=output, latency=latency, seed=options.seed, command=command,
        corpora=options.corpora(),
    )  # fmt: skip
    write_json(json, to_json(document))
    if not quiet:
        screen = table_console(json)
        for sentence in _told(predictor, trace):
            screen.print(Text(sentence))
        screen.print(Text(f"Wrote {output}."))


def execute_evaluation(
    options: PredictorOptions,
    *,
    predictor: str | None,
    json: str | None,
    plots: str | None,
    quiet: bool,
) -> None:
    """Read, score, measure, write and print.

    Raises:
        InputError: anything in the arguments, the traces or the predictor that breaks a rule.
    """
    read = [*options.traces, *([] if predictor is None else [predictor])]
    check_json(json, read)
    if plots is not None:
        check_folder(plots)
    kind = options.check()
    if predictor is not None and options.kind is not None:
        raise InputError("a trained predictor has a kind: give one of the two", field="--kind")
    asked: Kind | TrainedPredictor = kind if predictor is None else load(predictor)
    latency = load_latency(options.latency)
    command = options.words("evaluate")
    if predictor is None:
        command += ["--kind", str(kind), "--alpha", f"{options.alpha:g}"]
    else:
        command += ["--predictor", predictor]

    trace = options.open(quiet=quiet)
    with waiting("scoring workers", quiet=quiet) as say:
        evaluation = evaluate(trace, asked, alpha=options.alpha, latency=latency, seed=options.seed)
        document = evaluation_document(
            trace, evaluation, latency=latency, seed=options.seed, command=command,
            corpora=options.corpora(),
        )  # fmt: skip
        write_json(json, to_json(document))
        drawn: list[str] = []
        if plots is not None:
            say("drawing figures")
            drawn = draw_evaluation(document, plots)
    if quiet:
        return
    screen = table_console(json)
    print_evaluation(screen, document)
    for sentence in drawn:
        screen.print(Text(sentence))


def _told(predictor: TrainedPredictor, trace: Trace) -> list[str]:
    """What was trained, in sentences."""
    if predictor.kind is Kind.LENGTH:
        return [f"{trace.source}: kind {predictor.kind} ranks by length and needs no training."]
    on = predictor.trained_on
    sessions = f"{len(on.sessions):,} session{'s' * (len(on.sessions) != 1)}"
    said = [
        f"{trace.source}: kind {predictor.kind} from {on.workers:,} "
        f"worker{'s' * (on.workers != 1)} of {sessions}."
    ]
    if on.lifetimes_floored:
        said.append(f"Raised {on.lifetimes_floored:,} lifetimes to the floor of 0.2 s.")
    return said
