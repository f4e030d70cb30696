"""How right predictions are: what commands print of data with labels."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..readers.data import whole_number
from .output import show_table

_LEAST = 2.0**-52  # of a probability, as scikit-learn's log_loss has it
_COLUMNS = 8  # classes that have a column of the table
_ROWS = 30  # classes that have a row


def warn_unless_above(accuracy: float, labels: Counter[Any]) -> None:
    """Warn where an accuracy is not above the share of the largest class of so many labels."""
    label, count = labels.most_common(1)[0]
    share = count / labels.total()
    if accuracy <= share and len(labels) > 1:
        warnings.warn(
            f"the accuracy, {accuracy:.4f}, is not above that of always saying {str(label)!r}, the "
            f"largest class: {share:.4f}.",
            stacklevel=2,
        )


def warn_of_other_labels(labels: Iterable[Any], classes: np.ndarray) -> None:
    """Warn that none of some labels is a class of a model, so that no prediction can be right."""
    label = next(iter(labels))
    warnings.warn(
        f"none of the labels of the data, as {str(label)!r}, is a class of the model, as "
        f"{str(classes[0])!r}: no prediction can be right.",
        stacklevel=2,
    )


def positions(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of the class that each label is, by how it is written, or -1.

    "1" is "1.0" too, unless these are two classes.
    """

    def keys(values: np.ndarray) -> list[str]:
        written = values.astype(str).tolist()
        known = {value: whole_number(value) or value for value in set(written)}
        return [known[value] for value in written]

    place = {key: i for i, key in enumerate(keys(classes))}
    if len(place) < len(classes):
        place = {key: i for i, key in enumerate(classes.astype(str).tolist())}
        return np.asarray([place.get(label, -1) for label in labels.astype(str).tolist()], np.intp)
    return np.asarray([place.get(key, -1) for key in keys(labels)], np.intp)


class Evaluation:
    """Labels beside the predictions of a model of these classes, counted as they come."""

    def __init__(self, classes: np.ndarray) -> None:
        self._classes = classes
        self._pairs: Counter[tuple[Any, Any]] = Counter()  # (label, prediction)
        self._loss = 0.0
        self._has_loss = True
        self._is_met = False

    def add(self, labels: np.ndarray, predicted: np.ndarray, probability: Any = None) -> None:
        """Count some samples; without their probabilities there is no log loss.

        Labels and predictions are compared as numbers where both are, else as `positions` does.
        """
        classes = self._classes
        if predicted.dtype.kind in "US" or labels.dtype.kind in "US":
            at = positions(labels, classes)
            predicted, classes = predicted.astype(str), classes.astype(str)
            labels = np.where(at < 0, labels.astype(str), classes[at])
        self._is_met |= bool(np.isin(labels, classes).any())
        self._pairs.update(zip(labels.tolist(), predicted.tolist(), strict=True))
        if probability is None:
            self._has_loss = False
            return
        column = {label: i for i, label in enumerate(classes.tolist())}
        at = np.asarray([column.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        own = np.where(at < 0, 0.0, probability[np.arange(len(at)), at])
        self._loss -= float(np.log(np.clip(own, _LEAST, 1 - _LEAST)).sum())

    def _sums(self, of: int) -> Counter[Any]:
        """The number of samples of each label (0), or of each prediction (1)."""
        sums: Counter[Any] = Counter()
        for pair, n in self._pairs.items():
            sums[pair[of]] += n
        return sums

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self._pairs.total()

    @property
    def accuracy(self) -> float:
        """The share of samples that are predicted right."""
        return sum(n for (label, said), n in self._pairs.items() if label == said) / self.samples

    @property
    def largest_share(self) -> float:
        """The share of the largest class: the accuracy of always saying it."""
        return max(self._sums(0).values()) / self.samples

    def facts(self) -> dict[str, Any]:
        """The scores of all samples."""
        facts = {"accuracy": self.accuracy, "largest_class_share": self.largest_share}
        return facts | ({"log_loss": self._loss / self.samples} if self._has_loss else {})

    def report(self) -> dict[str, Any]:
        """The scores of each class, and the confusion matrix: samples of a class by prediction."""
        labels, predicted = self._sums(0), self._sums(1)
        confusion: dict[Any, dict[Any, int]] = {label: {} for label in labels}
        for (label, said), n in self._pairs.items():
            confusion[label][said] = n
        of_classes = {}
        for label in sorted(labels.keys() | predicted.keys()):
            samples, taken, hits = labels[label], predicted[label], self._pairs[label, label]
            of_classes[label] = {
                "samples": samples,
                "precision": hits / taken if taken else 0.0,
                "recall": hits / samples if samples else 0.0,
                "f1": 2 * hits / (samples + taken),
            }
        return {"of_classes": of_classes, "confusion": confusion}

    def warn(self) -> None:
        """Warn where the model is no better than none, or cannot be right."""
        labels = self._sums(0)
        if self._is_met:
            warn_unless_above(self.accuracy, labels)
        else:
            warn_of_other_labels(labels, self._classes)

    def show(self, *, on_stderr: bool = False) -> None:
        """Print the report as a table."""
        report = self.report()
        of_classes, confusion = report["of_classes"], report["confusion"]
        few = len(of_classes) <= _COLUMNS
        head = {"class": "left", "samples": "right", "precision": "right", "recall": "right"}
        head |= {"F1": "right"}
        head |= {f"as {x}": "right" for x in of_classes} if few else {"most often as": "left"}
        shown = sorted(of_classes, key=lambda x: -of_classes[x]["samples"])[:_ROWS]
        rows = []
        for label in sorted(shown):
            each, said = of_classes[label], confusion.get(label, {})
            row = [label, f"{each['samples']:,}"]
            row += [f"{each[name]:.3f}" for name in ("precision", "recall", "f1")]
            if few:
                row += [f"{said.get(other, 0):,}" for other in of_classes]
            else:
                wrong = {other: n for other, n in said.items() if other != label}
                other = max(wrong, key=wrong.__getitem__, default=None)
                row.append("" if other is None else f"{other} ({wrong[other]:,})")
            rows.append(row)
        left_out = len(of_classes) - len(rows)
        title = "Classes, and what they are predicted as"
        title += f", without the {left_out:,} smallest" if left_out else ""
        show_table(title, head, rows, on_stderr=on_stderr)
