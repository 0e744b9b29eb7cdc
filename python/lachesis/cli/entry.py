"""From arguments to an exit code: the commands, and every way in which they can end.

0 well; 1 a fault of ours; 2 a mistake of the user's; 130 Ctrl-C; 141 the reader of our output left;
143 SIGTERM.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, Group

from lachesis import __version__
from lachesis.cli.terminal import EXIT_BROKEN_PIPE, console, silence_stdout
from lachesis.cli.termination import interruption
from lachesis.errors import EXIT_INTERNAL, EXIT_USER, LachesisError

_HELP = """How long does high-bandwidth flash last under your agents' KV cache?

TRACE is a file or folder of agent logs, a NAME.trace, or a built-in corpus.
"""
_EPILOGUE = (
    "Exit codes: 0 well, 1 a fault of ours, 2 a mistake of yours, 130 interrupted, 143 terminated."
)


def build_app() -> App:
    """All commands; what a command needs is imported when it is called."""
    app = App(
        name="lachesis",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        version=__version__,
        help_format="plaintext",
        console=console(),
        error_console=console(stderr=True),
        group_commands=Group("Commands", sort_key=0),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    # The texts stand here too, so that the list of commands imports none of them.
    app.command(
        "lachesis.cli.run:run",
        name="run",
        help="Replay traces under placement policies; say how long the flash lasts.",
        usage="Usage: lachesis run TRACE... [OPTIONS]",
    )
    app.command(
        "lachesis.cli.sweep:sweep",
        name="sweep",
        help="Run a grid of traces, presets, policies, loads and seeds; resume it at will.",
        usage="Usage: lachesis sweep SPEC.toml -o DIR [OPTIONS]",
    )
    app.command(
        "lachesis.cli.reproduce:reproduce",
        name="reproduce",
        help="Compare the paper's published figures with ours, row by row.",
        usage="Usage: lachesis reproduce [OPTIONS]",
    )
    app.command(
        "lachesis.cli.report:report",
        name="report",
        help="Write a page about runs: the answer in words, plots, a table, the configuration.",
        usage="Usage: lachesis report DIR -o FILE.html [OPTIONS]",
    )
    app.command(
        "lachesis.cli.presets:presets",
        name="presets",
        help="List models, GPUs, memories, flash, policies and corpora, with sources.",
        usage="Usage: lachesis presets [KIND [NAME]]",
    )
    app.command(_find_app())
    app.command(_trace_app())
    app.command(_predictor_app())
    return app


def _find_app() -> App:
    find = App(
        name="find",
        help="Ask the other way round: which memory, load or split grants so many years.",
        version_flags=[],
        help_format="plaintext",
    )
    find.command(
        "lachesis.cli.find:find_smallest_hbm",
        name="smallest-hbm",
        help="The least HBM with which the flash lasts so many years.",
        usage="Usage: lachesis find smallest-hbm TRACE... --years YEARS [OPTIONS]",
    )
    find.command(
        "lachesis.cli.find:find_largest_load",
        name="largest-load",
        help="The largest load at which the flash lasts so many years, within the SLO.",
        usage="Usage: lachesis find largest-load TRACE... --years YEARS [OPTIONS]",
    )
    find.command(
        "lachesis.cli.find:find_cheapest_split",
        name="cheapest-split",
        help="The split with the lowest cost, given the price of a stack of each kind.",
        usage="Usage: lachesis find cheapest-split TRACE... --years YEARS --hbm-price PRICE "
        "--hbf-price PRICE [OPTIONS]",
    )
    find.command(
        "lachesis.cli.find:find_effect",
        name="effect",
        help="What a change does, at the same load and at the load that the SLO then admits.",
        usage="Usage: lachesis find effect TRACE... --set KEY=VALUE [OPTIONS]",
    )
    return find


def _predictor_app() -> App:
    predictor = App(
        name="predictor",
        help="Predict at the spawn which workers will live short: train, or evaluate.",
        version_flags=[],
        help_format="plaintext",
    )
    predictor.command(
        "lachesis.cli.predictor:train_predictor",
        name="train",
        help="Fit a predictor to the workers of traces, and write it to a small file.",
        usage="Usage: lachesis predictor train TRACE... -o FILE [OPTIONS]",
    )
    predictor.command(
        "lachesis.cli.predictor:evaluate_predictor",
        name="evaluate",
        help="Say how well scores at the spawn order workers by how long they live.",
        usage="Usage: lachesis predictor evaluate TRACE... [OPTIONS]",
    )
    return predictor


def _trace_app() -> App:
    trace = App(
        name="trace",
        help="Read agent logs into a trace; show it, measure it, cut it, or generate a corpus.",
        version_flags=[],
        help_format="plaintext",
    )
    trace.command(
        "lachesis.cli.trace_import:import_trace",
        name="import",
        help="Read agent logs into one trace; say what was found, filled in and left out.",
        usage="Usage: lachesis trace import SOURCE... -o NAME.trace [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_stats:trace_stats",
        name="stats",
        help="Say what is written, how long it lives and how often it is read, by class.",
        usage="Usage: lachesis trace stats TRACE... [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_show:show_trace",
        name="show",
        help="Show a session as people read it, and where its context was thrown away and why.",
        usage="Usage: lachesis trace show TRACE [SESSION] [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_edit:filter_trace",
        name="filter",
        help="Keep the sessions that meet every condition; write them as a trace.",
        usage="Usage: lachesis trace filter TRACE... -o NAME.trace [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_edit:merge_traces",
        name="merge",
        help="Write several traces as one.",
        usage="Usage: lachesis trace merge TRACE... -o NAME.trace [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_check:validate_trace",
        name="validate",
        help="Check every rule of a trace; the first that is broken is named with its place.",
        usage="Usage: lachesis trace validate TRACE... [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_export:export_trace",
        name="export",
        help="Write a trace as other simulators read it, or what its replay writes to flash.",
        usage="Usage: lachesis trace export TRACE... -o FILE [OPTIONS]",
    )
    trace.command(
        "lachesis.cli.trace_generate:generate_trace",
        name="generate",
        help="Generate a built-in corpus, with another seed or size; equal seeds, equal traces.",
        usage="Usage: lachesis trace generate CORPUS -o NAME.trace [OPTIONS]",
    )
    return trace


def execute(arguments: Sequence[str], terminated: Callable[[], bool] = lambda: False) -> int:
    """Run one command line and return its exit code; errors become one line on standard error.

    `terminated` says whether an interrupt was SIGTERM (see `termination`).
    """
    debug = "--debug" in arguments
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
    if hasattr(sys.stdout, "reconfigure"):
        # A terminal that cannot show a character gets a question mark instead of an error.
        sys.stdout.reconfigure(errors="replace")
        sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = build_app()(list(arguments), exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        return EXIT_BROKEN_PIPE
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_INTERNAL
    except KeyboardInterrupt:
        said, code = interruption(terminated())
        return _fail(said, code, debug=debug, prefix="")
    except LachesisError as error:
        return _fail(str(error), error.exit_code, debug=debug)
    except CycloptsError as error:
        return _fail(_usage_message(error), EXIT_USER, debug=debug)
    except OSError as error:
        # What the machine refuses (a full disk under standard output, say) is no fault of ours.
        said = error.strerror or str(error)
        named = f"{error.filename}: {said}" if error.filename else f"standard output: {said}"
        return _fail(named, EXIT_USER, debug=debug)
    except MemoryError:
        return _fail("this machine has too little memory for it", EXIT_USER, debug=debug)
    except Exception as error:
        # Whatever is left is a fault of ours, and still takes one line.
        said = f"internal error: {type(error).__name__}: {error}"
        if not debug:
            said += " (run with --debug for the traceback)"
        return _fail(said, EXIT_INTERNAL, debug=debug)
    return code if isinstance(code, int) else os.EX_OK


def _fail(message: str, code: int, *, debug: bool, prefix: str = "error: ") -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"lachesis: {prefix}{' '.join(message.split())}\n")
    return code


def _usage_message(error: CycloptsError) -> str:
    message = " ".join(str(error).split()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]} (see lachesis --help)"
