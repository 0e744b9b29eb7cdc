"""Ridge regressions that each leave one fold out: from sums over folds, which they share.

With a column of ones in X, and P the penalty α on all columns but that one,

    (Σ XfᵀXf + P) w = Σ Xfᵀyf        summed over the rows of every fold f but the one left out

so that no row is multiplied more than once, however many folds there are, and nothing of a fold
enters the weights that it is scored by. scikit-learn's `Ridge`,
which `lachesis.predict.training` fits a predictor with, has no way to share them, and takes longer
to import than all folds take here; the two agree to 1e-9 (tested). The sums are square in the
columns that are used, so that where these are many the folds are left to scikit-learn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.predict.one_thread import one_thread
from lachesis.predict.training import feature_matrix, ridge

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rows that are multiplied at one time: memory grows with the columns, not with the rows.
_BLOCK_ROWS = 4_096
#: Beyond so many columns solving takes longer than scikit-learn does with its import.
_MOST_COLUMNS = 1_000


def fold_of_groups(group: Ints, folds: int) -> Ints:
    """The fold of each row: groups whole, the largest first, each to the fold with fewest rows.

    As scikit-learn's `GroupKFold` deals them.

    Args:
        group: of each row, a number from 0; at least as many different ones as folds.
        folds: how many.

    Example:
        >>> fold_of_groups(np.array([0, 0, 0, 1, 2, 2]), 2).tolist()
        [0, 0, 0, 1, 1, 1]
    """
    sizes = np.bincount(group)
    rows_of_fold = np.zeros(folds, dtype=np.int64)
    fold_of_group = np.empty(len(sizes), dtype=np.int64)
    for largest in np.argsort(sizes, kind="stable")[::-1]:
        fold = int(np.argmin(rows_of_fold))
        rows_of_fold[fold] += sizes[largest]
        fold_of_group[largest] = fold
    return fold_of_group[group]


class _Sums(NamedTuple):
    """XᵀX and Xᵀy."""

    squares: Floats
    products: Floats


def ridge_without_each_fold(
    extracted: _engine.SpawnFeatures, target: Floats, fold: Ints, alpha: float, width: int
) -> list[tuple[float, Floats]]:
    """Intercept and weights of the regression on the rows outside each fold, in order of folds.

    Args:
        extracted: features, a row each.
        target: what is fitted.
        fold: of each row, a number from 0, none left out.
        alpha: the penalty, above 0; the intercept has none.
        width: how many weights there are.

    Raises:
        InputError: there are so many columns that scikit-learn is needed, which is not installed.
    """
    used = np.unique(extracted.csr()[1])
    folds = range(int(fold.max()) + 1)
    if len(used) > _MOST_COLUMNS:
        matrix = feature_matrix(extracted, width)
        fits = [ridge(matrix[fold != number], target[fold != number], alpha) for number in folds]
        return [(float(fit.intercept_), np.asarray(fit.coef_, dtype=np.float64)) for fit in fits]
    penalty = np.full(len(used) + 1, alpha)
    penalty[-1] = 0.0
    with one_thread():
        sums = [_sums(extracted, target, np.flatnonzero(fold == number), used) for number in folds]
        return [
            _solved(sums[:number] + sums[number + 1 :], penalty, used, width) for number in folds
        ]


def _solved(
    sums: list[_Sums], penalty: Floats, used: NDArray[np.uint32], width: int
) -> tuple[float, Floats]:
    squares = np.sum([each.squares for each in sums], axis=0) + np.diag(penalty)
    products = np.sum([each.products for each in sums], axis=0)
    found = np.linalg.solve(squares, products)
    weights = np.zeros(width)
    weights[used] = found[:-1]
    return float(found[-1]), weights


def _sums(
    extracted: _engine.SpawnFeatures, target: Floats, rows: Ints, used: NDArray[np.uint32]
) -> _Sums:
    """Over some rows, of the columns that are used and one of ones."""
    squares, products = np.zeros((len(used) + 1, len(used) + 1)), np.zeros(len(used) + 1)
    for block in np.split(rows, range(_BLOCK_ROWS, len(rows), _BLOCK_ROWS)):
        offsets, indices, values = extracted.take(block.tolist()).csr()
        matrix = np.zeros((len(block), len(used) + 1))
        row_of_value = np.repeat(np.arange(len(block)), np.diff(offsets))
        matrix[row_of_value, np.searchsorted(used, indices)] = values
        matrix[:, -1] = 1.0
        squares += matrix.T @ matrix
        products += matrix.T @ target[block]
    return _Sums(squares, products)
