"""The policies by name. Decisions are made in Rust (`rust/lachesis-core/src/policy`)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from lachesis.errors import InputError
from lachesis.policy.python_policy import PythonPolicy, construct, load_class, source_sha256
from lachesis.policy.ranking import RankingOptions
from lachesis.traces.schema import SegmentClass


@dataclass(frozen=True)
class Policy:
    """A placement policy, ready to run.

    Attributes:
        name: as in results and on the command line.
        summary: what it does, in one line.
        source: where it comes from.
        writes_flash: whether generated KV may reach flash; device-years are null otherwise.
        frees_at_boundaries: whether blocks are freed at context boundaries.
        classes_in_hbm: for policies that place by class alone, the classes that go to HBM.
        ranking: for policies that rank workers, how.
        python: the class of a policy in Python; every run has a new one.
        chosen_for: what was fixed from the trace beforehand, for the provenance.
    """

    name: str
    summary: str
    source: str
    writes_flash: bool = True
    frees_at_boundaries: bool = True
    classes_in_hbm: frozenset[str] | None = None
    ranking: RankingOptions | None = None
    python: type[PythonPolicy] | None = None
    chosen_for: tuple[tuple[str, Any], ...] = ()

    def engine(self) -> dict[str, Any]:
        """The policy as `_engine.replay` takes it."""
        targets = None
        if self.classes_in_hbm is not None:
            targets = [0 if str(name) in self.classes_in_hbm else 1 for name in SegmentClass]
        options = None if self.ranking is None else self.ranking.engine()
        decided = {"name": self.name, "targets": targets, "options": options}
        return decided if self.python is None else {**decided, **dict(self.chosen_for)}

    def engine_for_a_run(self) -> dict[str, Any]:
        """As `engine`, with a new object of a policy in Python.

        Raises:
            PolicyError: it raised an error.
        """
        if self.python is None:
            return self.engine()
        return {**self.engine(), "python": construct(self.python, self.name)}


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(
            name="hbm-first",
            summary="HBM while it has a free block, else HBF; frees only under memory pressure",
            source="paper, section 5.2, the baseline",
            frees_at_boundaries=False,
        ),
        Policy(
            name="hbf-only",
            summary="every block to flash",
            source="Son et al., IEEE CAL 25(2) 251-254",
        ),
        Policy(
            name="hbm-only",
            summary="generated KV never reaches flash; shared prompts lie there",
            source="H3 (IEEE CAL 25(1) 49-52) and FLINT (IEEE CAL 2026)",
            writes_flash=False,
        ),
        Policy(
            name="read-write-ratio",
            summary="classes with a mean read-to-write ratio above a threshold to HBF",
            source="Kyung et al., IEEE CAL 25(1) 210-213",
        ),
        Policy(
            name="lachesis-deterministic",
            summary="short-lived classes to HBM, long-lived ones to HBF, freed at the boundary",
            source="paper, section 4, without the predictive path",
        ),
        Policy(
            name="lachesis",
            summary="the same, but only the workers predicted to be shortest-lived go to HBM",
            source="paper, section 4",
            ranking=RankingOptions(),
        ),
        Policy(
            name="lachesis-oracle",
            summary="lachesis, ranked by the workers' true lifetimes: the predictor's bound",
            source="the bound of the paper's predictive path",
            ranking=RankingOptions(by="true"),
        ),
    )
}


def policy_names() -> tuple[str, ...]:
    """Names of the policies, the baseline first."""
    return tuple(POLICIES)


def choose_policy(name: str) -> Policy:
    """The policy of a name, or of ``module:Class`` for one in Python.

    A name that ranks workers may be followed by options: ``lachesis:reserve=live,margin=2``.

    `read-write-ratio` still needs its threshold: `lachesis.policy.ratio.fix_threshold`.

    Raises:
        InputError: no such policy; lists the names.
        PolicyError: a policy in Python raised an error.

    Example:
        >>> choose_policy("hbm-first").frees_at_boundaries
        False
        >>> choose_policy("lachesis:margin=2").ranking.margin
        2.0
    """
    if name in POLICIES:
        return POLICIES[name]
    base, colon, options = name.partition(":")
    ranked = POLICIES.get(base)
    if colon and ranked is not None and ranked.ranking is not None:
        return replace(ranked, name=name, ranking=ranked.ranking.changed(options, policy=base))
    if colon and ranked is None:
        return _in_python(name)
    near = difflib.get_close_matches(name, POLICIES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    rule = f"must be one of {', '.join(POLICIES)}, or module:Class{hint}"
    raise InputError(rule, field="policy", value=name)


def _in_python(reference: str) -> Policy:
    kind = load_class(reference)
    policy = construct(kind, reference)
    return Policy(
        name=policy.name,
        summary=(kind.__doc__ or "written in Python").strip().partition("\n")[0],
        source=reference,
        frees_at_boundaries=not policy.keeps_past_boundaries,
        python=kind,
        chosen_for=(("source_sha256", source_sha256(kind)),),
    )
