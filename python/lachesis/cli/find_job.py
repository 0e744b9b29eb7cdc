"""Carries out ``lachesis find``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.quantities import parse_pairs
from lachesis.questions import Answer, Scenario
from lachesis.report.answer_table import print_answer
from lachesis.results.document import to_json
from lachesis.simulation import RunOptions

if TYPE_CHECKING:
    from lachesis.cli.find import Options

#: What ``--from`` says by its name; all else is a preset value.
_NAMED = ("model", "memory", "hardware", "flash", "slo")


def execute_find(
    options: Options, traces: Sequence[str], ask: Callable[[Scenario], Answer]
) -> None:
    """Read, ask, write and print.

    Raises:
        InputError: anything in the arguments, the presets or the traces that breaks a rule.
    """
    check_json(options.json, traces)
    with waiting("reading traces", quiet=options.quiet) as say:
        scenario = Scenario(
            _run_options(options, traces), threads=len(os.sched_getaffinity(0)), say=say
        )
        answer = ask(scenario)
    write_json(options.json, to_json(answer.document(scenario.provenance())))
    if not options.quiet:
        print_answer(table_console(options.json), answer)


def refuse_load(options: Options) -> None:
    """The load is what is asked for, and cannot be given."""
    if options.load != "auto":
        raise InputError("is what is asked for", field="--load", value=options.load)


def refuse_memory(options: Options) -> None:
    """The split is what is asked for, and cannot be given."""
    if options.memory is not None:
        raise InputError("is what is asked for", field="--memory", value=options.memory)


def before_and_changes(
    before: Sequence[str], options: Options
) -> tuple[Options, dict[str, object]]:
    """The options as they are before a change, and those of `RunOptions` that it changes.

    Args:
        before: what ``--from`` was given.
        options: the change, and what is common to both.

    Raises:
        InputError: a pair is not written ``KEY=VALUE``, or a key comes twice or is none.
    """
    pairs = parse_pairs(list(before), "--from", "KEY=VALUE")
    for key in pairs:
        if key not in _NAMED and "." not in key:
            rule = f"must be one of {', '.join(_NAMED)}, or a preset value such as node.duty_cycle"
            raise InputError(rule, field="--from", value=key)
    values = tuple(f"{key}={value}" for key, value in pairs.items() if key not in _NAMED)
    named: dict[str, Any] = {name: pairs.get(name) for name in _NAMED}
    changes: dict[str, object] = {
        name: getattr(options, name) for name in _NAMED if getattr(options, name) is not None
    }
    if options.set:
        changes["set"] = (*values, *options.set)
    starting: Options = replace(options, set=list(values), **named)
    return starting, changes


def _run_options(options: Options, traces: Sequence[str]) -> RunOptions:
    named = {name: getattr(options, name) for name in _NAMED}
    return RunOptions(
        traces=tuple(traces), format=options.format, map=tuple(options.map or ()),
        set=tuple(options.set or ()), policies=tuple(options.policy or ()), load=options.load,
        seed=options.seed, precision=options.precision, turnovers=options.turnovers,
        horizon=options.horizon,
        **{name: value for name, value in named.items() if value is not None},
    )  # fmt: skip
