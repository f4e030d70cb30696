"""The command line: what each command does, prints and writes, and how it ends."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import typer
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, f1_score, log_loss, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

import gpucenters
from gpucenters import (
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    SparsityPath,
    multiclass,
)
from gpucenters._models import OPTIONS, found
from gpucenters.cli import app, main
from gpucenters.cli.models import MODELS
from gpucenters.cli.output import progress_of
from gpucenters.readers import FORMATS, read

# Of scikit-learn, for arrays without the names that the file of a model has.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
EVIL = "\x1b[31mred\x1b]0;title\x07"
N, M = 90, 8


def _numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.array(["calm", "loud"])[np.arange(N) % 2]
    X = rng.poisson(2 + 3 * (y[:, None] == "loud") * (np.arange(M) < 3), (N, M)).astype(float)
    names = np.array([EVIL, "[bold]b[/]", *(f"f{i}" for i in range(2, M))])
    return X, y, names


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    """A file of numbers with labels and names, one of them evil."""
    X, y, names = _numbers()
    path = tmp_path / "numbers.npz"
    np.savez(path, X=X, y=y, feature_names=names)
    return str(path)


TEXTS = [
    ("good", "fine and moving film"),
    ("good", "a fine film , moving story"),
    ("bad", "dull story , badly told"),
    ("bad", "dull and far too long"),
    ("good", "moving , funny and fine"),
    ("bad", "dull , loud , badly long"),
] * 5


@pytest.fixture
def texts(tmp_path: Path) -> str:
    """A file of texts with labels."""
    path = tmp_path / "texts.tsv"
    path.write_text("label\ttext\n" + "".join(f"{y}\t{text}\n" for y, text in TEXTS))
    return str(path)


class Run:
    """What a command printed, and its exit status."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: Any, code: int = 0) -> str:
        self._capsys.readouterr()
        found = main([str(argument) for argument in arguments])
        self.out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        assert "Traceback" not in self.err
        return self.out

    def json(self, *arguments: Any) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


# --- the way of a model ------------------------------------------------------------------------


def test_numbers_are_fitted_predicted_selected_and_inspected(
    run: Run, numbers: str, tmp_path: Path
) -> None:
    X, y, names = _numbers()
    model = tmp_path / "model"
    options = ["-e", "l2", "--k", "3", "--scale", "std", "-d", "cpu"]
    facts = run.json("fit", numbers, "-o", model, *options)
    expected = L2CenterClassifier(k=3, scale="std").fit(X, y)
    assert facts["best_features"] == names[expected.ranking_].tolist()
    assert facts["samples"] == N and facts["classes"] == {"calm": 45, "loud": 45}
    assert set(facts["seconds"]) == {"reading", "fitting", "saving"}
    saved = gpucenters.load(model)
    assert saved.feature_names_in_.tolist() == names.tolist() and saved.verbose is False

    assert run("predict", model, numbers).splitlines() == expected.predict(X).tolist()
    accuracy = expected.score(X, y)
    share = "share of the largest class 0.5000"
    assert run.err == f"accuracy {accuracy:.4f} of 90 samples; {share}\n"
    found = run.json("predict", model, numbers, "--proba")
    assert found["predictions"] == expected.predict(X).tolist()
    assert found["predict_proba"]["classes"] == ["calm", "loud"]
    np.testing.assert_array_equal(found["predict_proba"]["values"], expected.predict_proba(X))
    assert found["accuracy"] == accuracy and found["samples"] == N

    columns = tmp_path / "columns.npz"
    run("select", model, numbers, "--output", columns)
    again = read(columns)
    np.testing.assert_array_equal(again.X, expected.transform(X))
    np.testing.assert_array_equal(again.y, y)
    np.testing.assert_array_equal(again.feature_names, names[expected.support_])
    assert run.json("select", model, numbers, "-o", columns, "--k", "2")["features"] == 2

    held = run.json("inspect", model, "--top", "2")
    assert [each["column"] for each in held["top"]] == expected.ranking_[:2].tolist()
    at = expected.support_.tolist().index(held["top"][0]["column"])
    assert list(held["top"][0]["centers"].values()) == expected.centers_[:, at].tolist()
    assert held["top"][0]["gain"] == expected.scores_[expected.ranking_[0]]
    assert held["parameters"] == {"scale": "std"} and "no partial_fit" in held["holds"]
    assert run("inspect", model).count("│ loud") == 3


@pytest.mark.parametrize("output", ["p.tsv", "p.csv", "p.npy"])
def test_predictions_are_written_in_the_format_of_the_name(
    run: Run, numbers: str, tmp_path: Path, output: str
) -> None:
    X, y, _ = _numbers()
    model, path = tmp_path / "model", tmp_path / output
    run("fit", numbers, "-o", model, "-e", "bernoulli")
    expected = SparseBernoulliNB().fit(X, y)
    for flag, method in (("--decision", "decision_function"), ("--proba", "predict_proba")):
        assert run("predict", model, numbers, "-o", path, flag) == ""
        values = getattr(expected, method)(X).reshape(N, -1)
        if output.endswith("npy"):
            np.testing.assert_array_equal(np.load(path), values)
            continue
        head, *rows = [re.split("[\t,]", line) for line in path.read_text().splitlines()]
        assert head == ["class", *(["loud"] if flag == "--decision" else ["calm", "loud"])]
        assert [row[0] for row in rows] == expected.predict(X).tolist()
        np.testing.assert_array_equal([[float(x) for x in row[1:]] for row in rows], values)


def test_sparse_columns_are_written_for_scipy_and_for_the_readers(
    run: Run, texts: str, tmp_path: Path
) -> None:
    model, path = tmp_path / "model", tmp_path / "columns.npz"
    run("fit", texts, "-o", model, "-e", "l2", "-k", "3")
    run("select", model, texts, "-o", path)
    words = CountVectorizer().fit([text for _, text in TEXTS])
    X = words.transform([text for _, text in TEXTS])
    expected = L2CenterClassifier(k=3).fit(X, [label for label, _ in TEXTS])
    names = words.get_feature_names_out()[expected.support_]
    assert (scipy.sparse.load_npz(path) != expected.transform(X)).nnz == 0
    again = read(path)
    assert again.feature_names.tolist() == names.tolist() and again.y[0] == "good"
    run("select", model, texts, "-o", tmp_path / "columns.csv", code=1)
    assert "use .npz" in run.err


def test_held_out_samples_are_scored(run: Run, numbers: str, tmp_path: Path) -> None:
    X, y, _ = _numbers()
    model = tmp_path / "model"
    shown = run("fit", numbers, "-o", model, "-e", "l2", "-k", "50%", "--test", numbers)
    expected = L2CenterClassifier(k=0.5).fit(X, y).score(X, y)
    assert re.search(rf"accuracy\s+{expected:.6g}\s", shown) and "reading" in shown
    assert re.search(r"model \([1-9][\d.]* kB\)", " ".join(shown.split()))
    facts = run.json("fit", numbers, "-o", model, "--test-size", "0.2", "--seed", "3")
    assert (facts["samples"], facts["held_out"]) == (72, 18)
    assert facts["classes"] == {"calm": 36, "loud": 36}
    run("fit", numbers, "-o", model, "--test-size", "0.2", "--test", numbers, code=2)


@pytest.mark.parametrize("test", ["missing.npz", "unlabelled.npz"])
def test_held_out_data_are_read_before_the_fit(
    run: Run, numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str
) -> None:
    def fit(*_: Any) -> None:
        raise AssertionError("work is thrown away")

    np.savez(tmp_path / "unlabelled.npz", X=_numbers()[0])
    monkeypatch.setattr(L2CenterClassifier, "fit", fit)
    run("fit", numbers, "-o", tmp_path / "m", "-e", "l2", "--test", tmp_path / test, code=1)
    assert test in run.err


def test_labels_may_have_files_of_their_own(run: Run, tmp_path: Path) -> None:
    X, y, _ = _numbers()
    files = {"X": X, "y": y, "other_X": X[::-2], "other_y": y[::-2]}
    paths = {name: tmp_path / f"{name}.npy" for name in files}
    for name, values in files.items():
        np.save(paths[name], values)
    own = ["--labels", paths["y"], "--test", paths["other_X"], "--test-labels", paths["other_y"]]
    own += ["-e", "l2"]
    facts = run.json("fit", paths["X"], "-o", tmp_path / "model", "-k", "3", *own)
    expected = L2CenterClassifier(k=3).fit(X, y).score(X[::-2], y[::-2])
    assert facts["accuracy"] == expected and facts["held_out"] == len(X[::-2])
    assert run.json("path", paths["X"], "--ks", "3", *own)["mean"] == [expected]


@pytest.mark.parametrize("kind", [getattr(multiclass, name) for name in multiclass.__all__])
def test_a_decomposition_is_inspected_and_has_no_columns_to_select(
    run: Run, numbers: str, tmp_path: Path, kind: Any
) -> None:
    X, y, _ = _numbers()
    fitted = kind(L2CenterClassifier(k=2)).fit(X, np.where(np.arange(N) < 20, "new", y))
    fitted.save(tmp_path / "model")
    held = run.json("inspect", tmp_path / "model")
    assert (held["model"], held["parameters"]) == (kind.__name__, "as by default")
    assert (held["estimator"], held["estimator_parameters"]) == ("L2CenterClassifier", {"k": "2"})
    assert held["classes"] == ["calm", "loud", "new"]
    assert held["binary_models"] == len(fitted.estimators_) and held["top"] == []
    assert "binary models" in run("inspect", tmp_path / "model")
    run("select", tmp_path / "model", numbers, "-o", tmp_path / "x.npz", "-k", "1", code=1)
    assert "no columns of the whole model" in run.err


@pytest.mark.parametrize(
    ("words", "options", "before"),
    [
        (CountVectorizer(binary=True), ("--binary",), ["LogRatioScaler"]),
        (TfidfVectorizer(), ("--vectorizer", "tfidf"), []),
        (None, (), ["StandardScaler"]),
    ],
    ids=["words", "tf-idf", "numbers"],
)
def test_a_second_stage_is_fitted_on_the_selected_features_and_saved(
    run: Run,
    texts: str,
    numbers: str,
    tmp_path: Path,
    words: Any,
    options: tuple[str, ...],
    before: list[str],
) -> None:
    model, data = tmp_path / "model", texts if words else numbers
    options = (*options, "-k", "3", "-d", "cpu", "--second-stage", "logistic")
    facts = run.json("fit", data, "-o", model, *options)
    found = gpucenters.load(model)
    second = [step for _, step in found.steps[1 if words is None else 2 :]]
    assert [type(step).__name__ for step in second] == [*before, "LogisticRegression"]
    assert facts["second_stage"] == ", ".join(map(str, second))
    if words is None:
        X, y, _ = _numbers()
    else:
        y, X = zip(*TEXTS, strict=True)
    steps = [] if words is None else [words]
    expected = make_pipeline(*steps, L2CenterClassifier(k=3), *map(clone, second)).fit(X, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-9)
    predicted = run("predict", model, data).splitlines()
    assert predicted == [str(label) for label in expected.predict(X)]
    assert "LogisticRegression" in run("inspect", model)
    # What is held out is scored by the whole.
    facts = run.json("fit", data, "-o", model, *options, "--test-size", "0.4", "--seed", "1")
    assert facts["held_out"] == round(0.4 * len(y)) and facts["accuracy"] > 0.6


def test_a_second_stage_that_cannot_be_fitted_is_an_error_that_says_why(
    run: Run, texts: str, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    options = ("-o", model, "-d", "cpu", "--second-stage", "logistic")
    run("fit", texts, *options, "--batch-rows", "9", "--vectorizer", "hashing", code=2)
    assert "needs all samples: leave --batch-rows out" in run.err
    few = tmp_path / "few.tsv"
    few.write_text("label\ttext\ngood\tfine film\nbad\tdull film\nbad\tlong\n")
    run("fit", few, *options, code=1)
    assert "chooses its ridge on 20% of the samples, and these are too few" in run.err
    assert not model.exists()


@pytest.mark.parametrize("second", [(), (LogisticRegression(),), (MaxAbsScaler(), LinearSVC())])
def test_a_pipeline_saved_from_python_is_inspected_and_predicts(
    run: Run, texts: str, tmp_path: Path, second: tuple[Any, ...]
) -> None:
    y, X = zip(*TEXTS, strict=True)
    fitted = make_pipeline(CountVectorizer(), L2CenterClassifier(k=3), *second).fit(X, y)
    model, out = tmp_path / "model", tmp_path / "selected.npz"
    gpucenters.save(fitted, model)
    assert run("predict", model, texts, "-d", "cpu").split() == fitted.predict(X).tolist()
    held = run.json("inspect", model)
    assert [each["feature"] for each in held["top"]] == ["dull", "fine", "moving"]
    names = [type(step).__name__ for step in second]
    assert list(held.get("second_stage", {})) == names
    assert all(name in run("inspect", model) for name in names)
    run("select", model, texts, "-o", out)
    assert read(out).X.toarray().tolist() == fitted[:2].transform(X).toarray().tolist()
    method, flag = (
        ("predict_proba", "--proba") if len(second) == 1 else ("decision_function", "--decision")
    )
    found = run.json("predict", model, texts, flag, "-d", "cpu")[method]["values"]
    expected = getattr(fitted, method)(X)
    np.testing.assert_allclose(found, expected.reshape(len(X), -1), rtol=1e-12)
    if len(second) == 2:
        run("predict", model, texts, "--proba", code=1)
        assert "LinearSVC has no predict_proba" in run.err


def test_a_full_file_serves_every_k(run: Run, numbers: str, tmp_path: Path) -> None:
    X, y, _ = _numbers()
    model = tmp_path / "model"
    run("fit", numbers, "-o", model, "-k", "2", "--full")
    assert "partial_fit" in run.json("inspect", model)["holds"]
    assert run.json("select", model, numbers, "-k", "5", "-o", tmp_path / "x.npy")["features"] == 5
    assert np.load(tmp_path / "x.npy").shape == (N, 5)
    gpucenters.load(model).partial_fit(X, y)


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (["-e", "l1", "--scale", "none"], gpucenters.L1CenterClassifier()),
        (["-e", "l2", "--priors", "0.2,0.8"], L2CenterClassifier(priors=[0.2, 0.8])),
        (
            ["-e", "mahalanobis", "--shrinkage", "0.5", "--covariance", "total"],
            gpucenters.MahalanobisCenterClassifier(shrinkage=0.5, covariance="total"),
        ),
        (
            ["-e", "bernoulli", "--binarize", "2", "--no-fit-prior", "--alpha", "0.1"],
            SparseBernoulliNB(binarize=2, fit_prior=False, alpha=0.1),
        ),
        (["-e", "multinomial", "-k", "3", "--tol", "1e-6"], SparseMultinomialNB(k=3, tol=1e-6)),
        (
            ["-e", "shrunken", "--class-weight", "balanced"],
            gpucenters.ShrunkenCentroidClassifier(class_weight="balanced"),
        ),
    ],
    ids=lambda x: x[1] if isinstance(x, list) else "",
)
def test_options_are_the_parameters_of_the_model(
    run: Run, numbers: str, tmp_path: Path, options: list[str], model: Any
) -> None:
    X, y, _ = _numbers()
    path = tmp_path / "model"
    run("fit", numbers, "-o", path, *options)
    found = gpucenters.load(path)
    assert type(found) is type(model)
    expected = model.get_params() | {"device": "auto"}
    assert found.get_params() == expected
    decision = gpucenters.load(path, "cpu").decision_function(X)
    np.testing.assert_array_equal(decision, model.fit(X, y).decision_function(X))


def test_the_registry_has_every_option_of_a_model() -> None:
    of_all = {"k", "device", "memory_budget", "verbose"}
    for model in MODELS.values():
        assert set(model.options) == found(model.kind)().get_params().keys() - of_all
    assert {*OPTIONS} == {option for model in MODELS.values() for option in model.options}


def test_progress_is_the_models_own_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y, _ = _numbers()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    model = L2CenterClassifier()
    with progress_of(model):
        assert model.verbose is True
        model.fit(X, y)
    assert model.verbose is False and capsys.readouterr().out == ""


# --- texts -------------------------------------------------------------------------------------


def test_texts_are_fitted_and_predicted_from_a_file_and_from_stdin(
    run: Run, texts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    run("fit", texts, "-o", model, "-e", "multinomial", "-k", "5", "--ngrams", "1,2")
    pipeline = make_pipeline(CountVectorizer(ngram_range=(1, 2)), SparseMultinomialNB(k=5))
    labels, plain = zip(*TEXTS, strict=True)
    pipeline.fit(plain, labels)
    assert run("predict", model, texts).splitlines() == pipeline.predict(plain).tolist()
    top = [each["feature"] for each in run.json("inspect", model)["top"]]
    names = pipeline[0].get_feature_names_out()
    assert top == names[pipeline[1].ranking_].tolist()
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a dull thing\nfine , fine\n")))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run("predict", model, "-") == "bad\ngood\n"
    assert run.err == ""


@pytest.mark.parametrize("label", ["", "x\t"], ids=["lines", "tsv"])
def test_predictions_of_a_pipe_come_line_by_line(
    run: Run, texts: str, tmp_path: Path, label: str
) -> None:
    model = tmp_path / "model"
    run("fit", texts, "-o", model, "-e", "bernoulli")
    command = [sys.executable, "-m", "gpucenters", "predict", str(model), "-"]
    command += ["--format", "tsv"] if label else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None

        def answers(*lines: str) -> bytes:
            stdin.write("".join(f"{label}{line}\n" for line in lines).encode())
            stdin.flush()
            if not select.select([stdout], [], [], 30)[0]:
                process.kill()
            return b"".join(stdout.readline() for _ in lines)

        try:
            assert answers("dull") == b"bad\n"
            assert answers("fine", "dull") == b"good\nbad\n"
        finally:
            process.kill()


def test_rows_of_stdin_are_predicted_as_those_of_a_file(
    run: Run, numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = _numbers()
    model, data = tmp_path / "model", tmp_path / "data.csv"
    run("fit", numbers, "-o", model, "-e", "l2")
    header = ",".join(["label", *map(str, range(M))])
    plain = "".join(f"{y},{','.join(map(str, x))}\n" for y, x in zip(y, X.tolist(), strict=True))
    data.write_text(f"{header}\n{plain}")
    gpucenters.load(model).fit(X, y).save(model)
    expected = run("predict", model, data), run.err
    monkeypatch.setattr("gpucenters.cli.predict._ROWS", 7)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    assert (run("predict", model, "-"), run.err) == expected


def test_a_model_goes_through_stdout_and_stdin(
    numbers: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["fit", numbers, "--output", "-", "-k", "2"]) == 0
    out, err = capsysbinary.readouterr()
    assert out.startswith(b"\x89GPUC") and b"L2CenterClassifier" in err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out)))
    assert main(["inspect", "-", "--json"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["selected"] == 2


def test_a_file_in_batches_is_the_file_at_once(run: Run, texts: str, tmp_path: Path) -> None:
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    options = ["-e", "bernoulli", "-k", "5", "--vectorizer", "hashing", "--test", texts]
    found = run.json("fit", texts, "-o", parts, *options, "--batch-rows", "7")
    expected = run.json("fit", texts, "-o", whole, *options)
    for name in ("samples", "features", "classes", "best_features", "objective", "accuracy"):
        assert found[name] == expected[name]
    assert found["best_features"][0].startswith("column ")
    assert run("predict", parts, texts, "--proba") == run("predict", whole, texts, "--proba")


def test_a_fit_of_texts_says_what_counts_their_words(run: Run, texts: str, tmp_path: Path) -> None:
    by = run.json("fit", texts, "-o", tmp_path / "m", "-e", "bernoulli")["words_by"]
    shown = run("fit", texts, "-o", tmp_path / "m", "-e", "bernoulli")
    assert f"vectorising by {by} " in " ".join(shown.split())


def test_a_norm_of_tf_idf_is_named_as_what_needs_every_word(
    run: Run, texts: str, tmp_path: Path
) -> None:
    options = ["-e", "l2", "-k", "3", "--vectorizer", "tfidf"]
    run("fit", texts, "-o", tmp_path / "m", *options)
    assert "--norm none" in run.err
    run("fit", texts, "-o", tmp_path / "m", *options, "--norm", "none")
    assert run.err == ""


@pytest.mark.parametrize(
    ("name", "test", "options", "pipeline"),
    [
        (
            "mpqa.tsv.gz",
            "mpqa.tsv.gz",
            ["-e", "bernoulli", "-k", "500"],
            make_pipeline(CountVectorizer(), SparseBernoulliNB(k=500)),
        ),
        (
            "r8.train.tsv.gz",
            "r8.test.tsv.gz",
            ["-e", "l2", "-k", "10%", "--scale", "std", "--vectorizer", "tfidf", "--norm", "none"],
            make_pipeline(TfidfVectorizer(norm=None), L2CenterClassifier(k=0.1, scale="std")),
        ),
    ],
    ids=["mpqa", "r8"],
)
def test_predictions_of_real_texts_are_those_of_the_pipeline_in_python(
    run: Run,
    data_dir: Path,
    tmp_path: Path,
    name: str,
    test: str,
    options: list[str],
    pipeline: Any,
) -> None:
    model = tmp_path / "model"
    run("fit", data_dir / name, "-o", model, *options)
    train, held_out = read(data_dir / name), read(data_dir / test)
    pipeline.fit(train.X, train.y)
    found = run("predict", model, data_dir / test).splitlines()
    assert found == pipeline.predict(held_out.X).tolist()
    accuracy = pipeline.score(held_out.X, held_out.y)
    assert run.err.startswith(f"accuracy {accuracy:.4f} of {len(held_out):,} samples; share of")
    assert accuracy > 0.8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--analyzer", "char_wb", "--ngrams", "2,3"],
         CountVectorizer(analyzer="char_wb", ngram_range=(2, 3))),
        (["--stop-words", "english"], CountVectorizer(stop_words="english")),
        (["--stop-words", "STOP"], CountVectorizer(stop_words=["film", "story"])),
    ],
    ids=["characters", "english", "file"],
)  # fmt: skip
def test_texts_are_characters_or_words_without_stop_words(
    run: Run, texts: str, tmp_path: Path, options: list[str], words: Any
) -> None:
    (tmp_path / "stop.txt").write_text("film\n\nstory\n")
    options = [str(tmp_path / "stop.txt") if each == "STOP" else each for each in options]
    facts = run.json("fit", texts, "-o", tmp_path / "model", "-e", "bernoulli", *options)
    labels, plain = zip(*TEXTS, strict=True)
    pipeline = make_pipeline(words, SparseBernoulliNB()).fit(plain, labels)
    assert facts["features"] == pipeline[-1].n_features_in_
    names = pipeline[0].get_feature_names_out()[pipeline[-1].ranking_]
    assert facts["best_features"] == names[:10].tolist()
    assert (
        run("predict", tmp_path / "model", texts).splitlines() == pipeline.predict(plain).tolist()
    )


@pytest.mark.filterwarnings("default")
def test_texts_in_front_of_their_labels_are_warned_of(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "swapped.tsv"
    data.write_text("".join(f"{text} {i}\t{y}\n" for i, (y, text) in enumerate(TEXTS)))
    warning = "there are 30 classes of 30 samples, which may be no labels: where texts stand in fr"
    for options in ([], ["--vectorizer", "hashing", "--batch-rows", "7"]):
        run("fit", data, "-o", tmp_path / "m", "-e", "bernoulli", *options)
        assert warning in run.err
        order = ["--no-header", "--text", "1", "--label", "2"]
        run("fit", data, "-o", tmp_path / "m", "-e", "bernoulli", *options, *order)
        assert "classes" not in run.err
        assert set(run("predict", tmp_path / "m", data, *order).split()) == {"bad", "good"}


def test_a_model_of_texts_knows_the_name_of_their_column(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(TEXTS, columns=["label", "review"])
    for name in ("reviews", "words"):
        frame.set_axis(["label", name], axis=1).to_csv(tmp_path / f"{name}.csv", index=False)
    for options in ([], ["--vectorizer", "hashing", "--batch-rows", "7"]):
        of_fit = ["-o", tmp_path / "m", "-e", "bernoulli", "--text", "reviews", *options]
        run("fit", tmp_path / "reviews.csv", *of_fit)
        assert run.json("predict", tmp_path / "m", tmp_path / "reviews.csv")["accuracy"] == 1
        run("predict", tmp_path / "m", tmp_path / "words.csv", code=1)
        assert "there is no column 'reviews' for --text; the columns are 'label', 'wor" in run.err
    run("predict", tmp_path / "m", tmp_path / "words.csv", "--text", "words")
    data = tmp_path / "texts.tsv"
    data.write_text("".join(f"{y}\t{text}\n" for y, text in TEXTS))
    run("predict", tmp_path / "m", data)
    run("fit", data, "-o", tmp_path / "m", "-e", "bernoulli")
    run("predict", tmp_path / "m", tmp_path / "words.csv", code=1)
    assert "there is no column 'text' for --text; the columns are 'label', 'words'" in run.err


def test_a_model_of_a_headed_tsv_knows_the_column_of_its_texts(run: Run, tmp_path: Path) -> None:
    model, headed, bare = (tmp_path / name for name in ("m", "headed.tsv", "bare.tsv"))
    rows = "".join(f"{y}\t{text}\n" for y, text in TEXTS)
    headed.write_text(f"label\treviews\n{rows}")
    bare.write_text(rows)
    run("fit", headed, "-o", model, "-e", "bernoulli", "--text", "reviews")
    for data in (headed, bare):
        assert run.json("predict", model, data)["accuracy"] == 1
    headed.write_text(f"reviews\tlabel\n{rows}")
    assert run.json("predict", model, headed, "--no-header")["samples"] == len(TEXTS) + 1


@pytest.mark.parametrize("command", ["fit", "path", "permute"])
def test_texts_whose_counts_would_not_fit_into_memory_are_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    from gpucenters.arrays import context

    texts = tmp_path / "texts.tsv"
    output = {"fit": ["-o", tmp_path / "model"], "path": ["--ks", "2"], "permute": ["-n", "99"]}
    others = " and others" * 40
    texts.write_text("".join(f"{i % 2}\tword{i % 2}{others}\n" for i in range(1000)))
    monkeypatch.setattr(context, "free_memory", lambda: 2_000_000)
    monkeypatch.setattr(sys, "platform", "linux")
    run(command, texts, *output[command], code=1)
    assert "million characters, whose words take about 0.0 GB to count" in run.err
    assert "--vectorizer hashing --batch-rows 10000" in run.err
    monkeypatch.setattr(sys, "platform", "darwin")
    run(command, texts, *output[command])


# --- the choice of a model, and how right it is ------------------------------------------------


@pytest.mark.parametrize("name", ["mpqa", "airline_tweets", "newsgroups4.train", "cr"])
def test_the_default_model_of_real_texts_is_near_the_best_and_above_the_largest_class(
    run: Run, data_dir: Path, tmp_path: Path, name: str
) -> None:
    def fitted(*options: str) -> Any:
        data = data_dir / f"{name}.tsv.gz"
        return run.json("fit", data, "-o", tmp_path / "m", "--test-size", "0.2", *options)

    found = fitted()
    assert run.err == "model: -e poisson, which suits texts. Another -e overrides it.\n"
    others = [["bernoulli"], ["multinomial"], ["shrunken"], ["l2", "--scale", "std"]]
    best = max(fitted("-e", *other)["accuracy"] for other in others)
    assert found["accuracy"] > found["largest_class_share"] + 0.1
    assert found["accuracy"] > best - 0.03


def test_the_default_model_of_measurements_is_scaled(
    run: Run, data_dir: Path, tmp_path: Path
) -> None:
    data, model = data_dir / "pima.npz", tmp_path / "model"
    found = run.json("fit", data, "-o", model, "--test-size", "0.2")
    assert run.err == (
        "model: -e l2 --scale pooled --priors empirical, which suits measurements. Another -e "
        "overrides it.\n"
    )
    assert found["accuracy"] > found["largest_class_share"]
    parameters = gpucenters.load(model).get_params()
    assert (parameters["scale"], parameters["priors"]) == ("pooled", "empirical")


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([[0, 3], [1, 0]], [], gpucenters.SparsePoissonNB()),
        ([[0, 3], [1, 2]], [], L2CenterClassifier(scale="pooled", priors="empirical")),
        ([[0, 0.5], [1, 0]], [], L2CenterClassifier(scale="pooled", priors="empirical")),
        ([[0, -3], [1, 0]], [], L2CenterClassifier(scale="pooled", priors="empirical")),
        ([[0, 3], [1, 0]], ["-e", "bernoulli"], SparseBernoulliNB()),
        # Options that one of the two takes choose it.
        ([[0, 3], [1, 2]], ["--alpha", "2"], gpucenters.SparsePoissonNB(alpha=2)),
        ([[0, 3], [1, 0]], ["--scale", "std"], L2CenterClassifier(scale="std", priors="empirical")),
    ],
    ids=["counts", "dense", "fractions", "negative", "named", "of counts", "of measurements"],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_model_is_chosen_by_the_values_where_none_is_named(
    run: Run, tmp_path: Path, values: Any, options: list[str], expected: Any, sparse: bool
) -> None:
    X, y = np.tile(np.asarray(values, dtype=float), (4, 1)), np.arange(8) % 4 // 2
    data = tmp_path / "data.npz"
    np.savez(data, X=X, y=y)
    if sparse:
        rows = [f"{y} 1:{a} 2:{b}\n" for y, (a, b) in zip(y, X, strict=True)]
        data = tmp_path / "data.svm"
        data.write_text("".join(rows))
    run("fit", data, "-o", tmp_path / "model", *options)
    found = gpucenters.load(tmp_path / "model")
    assert repr(found.set_params(device=None)) == repr(expected)


@pytest.mark.filterwarnings("default")
def test_l2_without_a_scale_warns_of_features_of_very_different_spread(
    run: Run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 7)), np.arange(40) % 2
    model, near, far = tmp_path / "model", tmp_path / "near.npz", tmp_path / "far.npz"
    np.savez(near, X=X, y=y)
    np.savez(far, X=X * [1, 1, 1, 1, 1, 1, 100], y=y)
    warning = "warning: the standard deviations of the features differ by orders of magnitude"
    run("fit", far, "-o", model, "-e", "l2")
    assert warning in run.err
    run("path", far, "-e", "l2", "--ks", "1")
    assert warning in run.err
    for data, options in ((near, []), (far, ["--scale", "none"]), (far, ["--scale", "std"])):
        run("fit", data, "-o", model, "-e", "l2", *options)
        assert run.err == ""


@pytest.mark.filterwarnings("default")
def test_an_accuracy_that_is_not_above_the_largest_class_is_warned_of(
    run: Run, tmp_path: Path
) -> None:
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 4 > 0
    data, model = tmp_path / "noise.npz", tmp_path / "model"
    np.savez(data, X=X, y=np.where(y, "most", "few"))
    warning = "is not above that of always saying 'most', the largest class: 0.7500."
    run("fit", data, "-o", model, "-e", "l2", "--test", data)
    assert warning in run.err
    assert "share of the largest class 0.7500" not in run.err
    run("predict", model, data)
    assert warning in run.err and "share of the largest class 0.7500" in run.err
    run("path", data, "-e", "l2", "--ks", "all")
    assert warning in run.err


def test_a_report_has_the_scores_of_scikit_learn(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]
    X = rng.standard_normal((60, 4)) + (y[:, None] == "a")
    paths = {name: tmp_path / f"{name}.npz" for name in ("train", "test")}
    np.savez(paths["train"], X=X[:40], y=y[:40])
    np.savez(paths["test"], X=X[40:], y=np.where(np.arange(20) < 2, "new", y[40:]))
    test, model = read(paths["test"]), tmp_path / "model"
    fitted = run.json("fit", paths["train"], "-o", model, "-e", "l2", "--test", paths["test"])
    found = run.json("predict", model, paths["test"], "--report")
    predictor = gpucenters.load(model)
    predicted = predictor.predict(test.X)
    expected = classification_report(test.y, predicted, output_dict=True, zero_division=0)
    for label in ("a", "b", "c", "new"):
        names = {"precision": "precision", "recall": "recall", "f1": "f1-score"}
        for name, other in names.items():
            assert found["of_classes"][label][name] == pytest.approx(expected[label][other])
        for other in ("a", "b", "c"):
            both = int(np.sum((test.y == label) & (predicted == other)))
            assert found["confusion"].get(label, {}).get(other, 0) == both
    assert found["accuracy"] == expected["accuracy"]
    known = test.y != "new"
    loss = log_loss(test.y[known], predictor.predict_proba(test.X[known]), labels=["a", "b", "c"])
    np.savez(paths["test"], X=test.X[known], y=test.y[known])
    of_known = run.json("predict", model, paths["test"], "--report", "--proba")
    assert of_known["log_loss"] == pytest.approx(loss)
    assert fitted["of_classes"] == found["of_classes"] and fitted["log_loss"] == found["log_loss"]
    run("predict", model, paths["test"], "--report")
    assert "log loss" in run.err and "as a" in run.err and "precision" in run.err


# --- data as other programs write them ---------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of numbers with names of samples and labels."""
    X, y, _ = _numbers()
    rows = [
        [f"s{i}", *map(str, row), label] for i, (row, label) in enumerate(zip(X, y, strict=True))
    ]
    head = ["sample", *(f"f{i}" for i in range(M)), "kind"]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n")
    return path


def test_columns_are_found_by_name_and_those_not_selected_may_be_absent(
    run: Run, table: Path, tmp_path: Path
) -> None:
    columns = ["--label", "kind", "--id", "sample"]
    facts = run.json("fit", table, *columns, "-o", tmp_path / "model", "-k", "2")
    expected = run("predict", tmp_path / "model", table).splitlines()
    first, second = facts["best_features"]
    head, *rows = [line.split(",") for line in table.read_text().splitlines()]
    few = [head.index(second), 0, head.index(first)]
    path = tmp_path / "few.csv"
    path.write_text("\n".join(",".join([*(row[i] for i in few), "x"]) for row in [head, *rows]))
    assert run("predict", tmp_path / "model", path).splitlines() == expected
    assert (
        run("predict", tmp_path / "model", path, "--id", "sample", "-o", tmp_path / "p.csv") == ""
    )
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines == ["sample,class", *(f"s{i},{label}" for i, label in enumerate(expected))]
    found = run.json("predict", tmp_path / "model", path, "--id", "sample")
    assert found["ids"] == [row[0] for row in rows] and found["predictions"] == expected
    (tmp_path / "few.txt").write_text(path.read_text().replace(",", "\t"))
    assert run("predict", tmp_path / "model", tmp_path / "few.txt").splitlines() == expected
    path.write_text(path.read_text().replace(first, "f99"))
    run("predict", tmp_path / "model", path, code=1)
    assert f"lacks 1 column of the 2 that the model takes, the first of them '{first}'" in run.err
    run("predict", tmp_path / "model", path, "--id", "sample", "-o", tmp_path / "p.npy", code=2)


@pytest.mark.filterwarnings("default")
def test_warnings_of_the_readers_name_options_of_the_commands(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"row": range(12), "a": range(12, 0, -1), "label": [0, 1] * 6})
    frame.to_csv(tmp_path / "x.csv", index=False)
    run("fit", tmp_path / "x.csv", "-o", tmp_path / "m")
    assert run.err.count("say --id row where it names the samples, or --drop row.") == 1
    # The names of files stay as they are.
    frame.to_csv("text=1.csv", index=False)
    Path("text=1.tsv").write_text("".join(f"{i}\tsome text\n" for i in range(24)))
    for name, warning in (("text=1.csv", "the column"), ("text=1.tsv", "there are 24 classes")):
        run("fit", name, "-o", "m", "-e", "poisson")
        assert f"warning: {name}: {warning}" in run.err


def test_names_that_a_model_has_twice_are_not_looked_up(run: Run, tmp_path: Path) -> None:
    X, y, names = _numbers()
    for name, first in (("twice", ["a", "a"]), ("once", ["a", "b"])):
        np.savez(tmp_path / f"{name}.npz", X=X, y=y, feature_names=[*first, *names[2:]])
    run("fit", tmp_path / "twice.npz", "-o", tmp_path / "m", "-k", "all")
    run("predict", tmp_path / "m", tmp_path / "twice.npz")
    run("predict", tmp_path / "m", tmp_path / "once.npz", code=1)
    assert "the model has several columns 'a', which the model takes" in run.err


@pytest.mark.filterwarnings("default")
def test_labels_of_other_data_are_classes_however_whole_numbers_are_written(
    run: Run, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"a": [0.5, 1.5, 5, 6] * 3, "label": [0, 0, 1, 1] * 3})
    frame.to_csv(tmp_path / "whole.csv", index=False)
    frame.astype(float).to_csv(tmp_path / "point.csv", index=False)
    frame.astype(float).to_parquet(tmp_path / "point.parquet")
    frame.assign(label=frame["label"] + 7).to_csv(tmp_path / "others.csv", index=False)
    paths = [tmp_path / name for name in ("whole.csv", "point.csv", "point.parquet")]
    for one in paths:
        run("fit", one, "-o", tmp_path / "m", "-k", "1", "-e", "l2")
        for other in paths:
            assert run.json("predict", tmp_path / "m", other, "--report")["accuracy"] == 1
            assert run.json("path", one, "-e", "l2", "--test", other)["mean"] == [1]
        run("predict", tmp_path / "m", tmp_path / "others.csv")
        assert "none of the labels of the data, as '7', is a class of the model, as '0" in run.err
    run("path", paths[0], "-e", "l2", "--test", tmp_path / "others.csv")
    assert "none of the labels of the data, as '7', is" in run.err
    # Others, and of another type, are counted as wrong.
    frame.assign(label=[*frame["label"][:9], "new", "new", "new"]).to_csv(paths[0], index=False)
    found = run.json("path", paths[2], "-e", "l2", "--test", paths[0])
    assert found["mean"] == [0.75]


def test_rows_without_a_label_are_predicted(run: Run, table: Path, tmp_path: Path) -> None:
    columns = ["--label", "kind", "--id", "sample"]
    run("fit", table, *columns, "-o", tmp_path / "model", "-k", "2")
    expected = run("predict", tmp_path / "model", table).splitlines()
    head, *rows = table.read_text().splitlines()
    for few in (rows[:2], []):
        blank = [row if row in few else row[: row.rindex(",") + 1] for row in rows]
        path = tmp_path / "blank.csv"
        path.write_text("\n".join([head, *blank]))
        parquet = tmp_path / "blank.parquet"
        pd.read_csv(path).to_parquet(parquet)
        for data in (path, parquet):
            found = run.json("predict", tmp_path / "model", data, "--label", "kind")
            assert found["predictions"] == expected and found["labelled"] == len(few)
    run("fit", path, *columns, "-o", tmp_path / "model", code=1)
    assert "line 2, column" in run.err and "the label is empty: --missing drop" in run.err


def test_test_data_in_another_order_are_aligned(run: Run, table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    other.write_text("\n".join(",".join(row[::-1]) for row in rows))
    both = [table, "--label", "kind", "--drop", "sample"]
    for command in (["path", *both, "--ks", "2"], ["fit", *both, "-k", "2", "-o", tmp_path / "m"]):
        results = [run.json(*command, "--test", test) for test in (table, other)]
        for result in results:
            del result["seconds"]
        assert results[0] == results[1]


@pytest.mark.filterwarnings("default")
def test_missing_values_become_the_medians_of_the_training_data(
    run: Run, table: Path, tmp_path: Path
) -> None:
    X, y, _ = _numbers()
    holes = np.arange(N * M).reshape(N, M) % 37 == 0
    rows = [line.split(",") for line in table.read_text().splitlines()]
    for i, j in np.argwhere(holes):
        rows[i + 1][j + 1] = "NA"
    table.write_text("\n".join(map(",".join, rows)))
    options = ["--label", "kind", "--id", "sample"]
    l2 = [*options, "-e", "l2", "--scale", "none"]
    run("fit", table, *l2, "-o", tmp_path / "model", "-k", "2", "--missing", "median")
    X[holes] = np.nan
    X = np.where(holes, np.nanmedian(X, axis=0), X)
    expected = L2CenterClassifier(k=2).fit(X, y)
    found = run.json("predict", tmp_path / "model", table, *options, "--decision")
    np.testing.assert_array_equal(
        np.ravel(found["decision_function"]["values"]), expected.decision_function(X)
    )
    dropped = run.json("fit", table, *options, "-o", tmp_path / "m", "--missing", "drop")
    assert "20 rows of 90 with missing values left out" in run.err
    assert dropped["samples"] == N - holes.any(axis=1).sum()
    path = run.json("path", table, *l2, "--ks", "2", "--missing", "median", "--test", table)
    assert path["mean"] == [expected.score(X, y)]


def test_a_model_reads_data_as_those_that_it_was_fitted_to(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(3, (40, 5)) + 5 * (np.arange(40)[:, None] % 2) * (np.arange(5) == 4)
    y, model = np.arange(40) % 2, tmp_path / "model"
    for base in (0, 1):
        data = tmp_path / f"{base}.svm"
        dump_svmlight_file(X, y, str(data), zero_based=base == 0)
        if base == 0:
            facts = run.json("fit", data, "-o", model, "-k", "1", "--zero-based")
            assert facts["best_features"] == ["column 4"]
            expected = run("predict", model, data)
        else:
            assert run("predict", model, data, "--one-based") == expected
            facts = run.json("fit", data, "-o", model, "-k", "1")
            assert facts["best_features"] == ["column 5"]
            assert run("predict", model, data) == expected
            assert run.json("inspect", model)["top"][0]["feature"] == "column 5"


# --- path --------------------------------------------------------------------------------------


def test_a_path_is_printed_drawn_and_written(run: Run, numbers: str, tmp_path: Path) -> None:
    X, y, _ = _numbers()
    picture, output = tmp_path / "path.png", tmp_path / "path.json"
    shown = run(
        "path", numbers, "-e", "l2", "--ks", "1,25%,all", "--cv", "3", "--scoring",
        "accuracy,f1_macro", "--plot", picture, "--output", output,
    )  # fmt: skip
    expected = gpucenters.sparsity_path(
        L2CenterClassifier(), X, y, ks=[1, 0.25, "all"], cv=3, scoring=["accuracy", "f1_macro"]
    )
    assert shown == f"{expected}\nshare of the largest class: 0.500\n"
    assert run.err.startswith("reading ")
    assert SparsityPath.from_json(output.read_text()).to_json() == expected.to_json()
    assert picture.read_bytes().startswith(b"\x89PNG")
    image = pytest.importorskip("matplotlib.image")
    # 150 dots an inch, and a panel for each score.
    assert image.imread(picture).shape[:2] == (1080, 960)
    assert run("path", numbers, "--ks", "2", "-o", "-").startswith('{"format"')


def test_a_path_of_texts_on_test_data_and_of_random_splits(run: Run, texts: str) -> None:
    found = run.json("path", texts, "--test", texts, "--ks", "1,5", "-e", "bernoulli")
    labels, plain = zip(*TEXTS, strict=True)
    X = CountVectorizer().fit_transform(plain)
    for k, mean in zip(found["ks"], found["mean"], strict=True):
        assert SparseBernoulliNB(k=k).fit(X, labels).score(X, labels) == mean
    assert found["best_k"] in (1, 5) and "vectorising" in found["seconds"]
    assert len(run.json("path", texts, "--n-splits", "3", "--ks", "1")["mean"]) == 1


def test_a_path_has_the_scores_of_a_positive_class_that_is_named(run: Run, numbers: str) -> None:
    X, y, _ = _numbers()
    for label in ("calm", "loud"):
        options = ["-e", "l2", "--ks", "2", "--scoring", "f1", "--pos-label", label]
        expected = gpucenters.sparsity_path(
            L2CenterClassifier(), X, y, ks=[2], scoring=make_scorer(f1_score, pos_label=label)
        )
        assert run.json("path", numbers, *options)["mean"] == expected.mean.tolist()


# --- permute -----------------------------------------------------------------------------------


def test_permutations_are_those_of_python_in_a_table_a_file_and_a_picture(
    run: Run, numbers: str, tmp_path: Path
) -> None:
    X, y, names = _numbers()
    table, picture = tmp_path / "features.csv", tmp_path / "features.png"
    options = ["-e", "l2", "--scale", "std", "-n", "99", "--seed", "3", "--fdr", "0.02"]
    found = run.json("permute", numbers, *options, "-o", table, "--plot", picture, "--top", "2")
    model = L2CenterClassifier(scale="std")
    expected = gpucenters.permutation_gains(model, X, y, 99, random_state=3)
    assert found["features_at_false_discovery_rate"] == expected.k_at(0.02)
    assert found["features_at_q"] == np.sum(expected.qvalues <= 0.02)
    assert found["features_at_family_wise_rate"] == np.sum(expected.pvalues_fwer <= 0.02)
    assert (found["permutations"], found["exact"]) == (99, False)
    assert [row["feature"] for row in found["top"]] == names[expected.ranking[:2]].tolist()
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["column"]) for row in rows] == expected.ranking.tolist()
    for name, values in (
        ("gain", expected.scores),
        ("pvalue", expected.pvalues),
        ("pvalue_fwer", expected.pvalues_fwer),
        ("qvalue", expected.qvalues),
    ):
        assert [float(row[name]) for row in rows] == values[expected.ranking].tolist()
    for rate in (0.02, 0.1, 0.5):
        assert sum(float(row["fdr"]) <= rate for row in rows) == expected.k_at(rate)
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = run("permute", numbers, *options, "--top", "3")
    assert "Features by gain, 3 of 8" in shown and r"\x1b[31mred" in shown


def test_permutations_of_texts_name_their_words_and_keep_to_groups(
    run: Run, texts: str, tmp_path: Path
) -> None:
    labels, plain = zip(*TEXTS, strict=True)
    groups = tmp_path / "groups.txt"
    groups.write_text("".join(f"{i // 5}\n" for i in range(len(TEXTS))))
    found = run.json("permute", texts, "-n", "50", "--groups", groups, "--top", "1")
    words = CountVectorizer().fit(plain)
    expected = gpucenters.permutation_gains(
        gpucenters.SparsePoissonNB(),
        words.transform(plain),
        labels,
        50,
        np.arange(len(TEXTS)) // 5,
        0,
    )
    (best,) = found["top"]
    assert best["feature"] == words.get_feature_names_out()[expected.ranking[0]]
    assert best["pvalue"] == expected.pvalues[expected.ranking[0]]


# --- what goes wrong ---------------------------------------------------------------------------

_USAGE = [
    (["fit", "DATA"], "Missing option '--output'"),
    (["fit", "DATA", "-o", "m", "-e", "l9"], "'--estimator' / '-e': 'l9' is not one of 'l2', 'l1'"),
    (["permute", "DATA", "--permute", "x"], "'--permute': 'x' is not one of 'within', 'groups'."),
    (["fit", "DATA", "-o", "m", "-e", "l1", "--alpha", "1", "--priors", "uniform"],
     "the estimator l1 does not take --priors, --alpha. It takes --scale."),
    (["fit", "DATA", "-o", "m", "--scale", "big"], "scale='big' is not valid"),
    (["fit", "DATA", "-o", "m", "-k", "many"], "'many' is no number of features"),
    (["fit", "DATA", "-o", "m", "-k", "120%"], "'120%' is no number of features"),
    (["fit", "DATA", "-o", "m", "--threshold", "1", "--offset", "1"],
     "does not take --threshold, --offset. It takes --scale, --priors. Estimators that do: "
     "shrunken."),
    (["fit", "DATA", "-o", "m", "--test-size", "1"], "1 leaves no samples on one side"),
    (["fit", "DATA", "-o", "m", "--test-labels", "DATA"], "--test-labels are those of --test"),
    (["fit", "DATA", "-o", "m", "--device", "abacus"], "unknown device 'abacus'"),
    (["fit", "DATA", "-o", "m", "--memory-budget", "lots"], "is not a size"),
    (["fit", "DATA", "-o", "FOLDER"], "'folder' is there, and is not a regular file"),
    (["fit", "TEXTS", "-o", "m", "--format", "svg"], "'svg' is not one of 'tsv', 'csv'"),
    (["fit", "TEXTS", "-o", "m", "--encoding", "nope"], "--encoding nope is none that Python"),
    (["fit", "TEXTS", "-o", "m", "--ngrams", "2,1"], "--ngrams takes two numbers"),
    (["fit", "TEXTS", "-o", "m", "--min-df", "-1"], "--min-df one from 1 or a share"),
    (["fit", "TEXTS", "-o", "m", "--norm", "l7"], "'l7' is not one of 'l2', 'l1', 'none'"),
    (["fit", "DATA", "-o", "nowhere/m"], "the folder 'nowhere' of the output does not exist"),
    (["fit", "TEXTS", "-o", "m", "--ngrams", "two"], "--ngrams takes two numbers"),
    (["fit", "TEXTS", "-o", "m", "--batch-rows", "5"], "--batch-rows needs --vectorizer hashing"),
    (["fit", "TEXTS", "-o", "m", "--batch-rows", "5", "--vectorizer", "hashing", "-e", "l1"],
     "L1CenterClassifier needs all samples at once"),
    (["fit", "TEXTS", "-o", "m", "--batch-rows", "5", "--vectorizer", "hashing", "-e", "bernoulli",
      "--class-weight", "balanced"], "--class-weight needs all samples: leave --batch-rows out"),
    (["fit", "-", "-o", "m", "--batch-rows", "5", "--vectorizer", "hashing"], "stdin cannot be"),
    (["fit", "TEXTS", "-o", "m", "--batch-rows", "5", "--test-size", "0.5"], "not --test-size"),
    (["fit", "TEXTS", "-o", "m", "--vectorizer", "hashing", "--min-df", "2"], "no min_df"),
    (["fit", "TEXTS", "-o", "m", "--token-pattern", "("], "is no regular expression"),
    (["fit", "TEXTS", "-o", "m", "--analyzer", "char", "--stop-words", "english"],
     "--token-pattern and --stop-words are for words"),
    (["predict", "MODEL", "DATA", "--proba", "--decision"], "exclude each other"),
    (["predict", "-", "-"], "cannot both be stdin"),
    (["predict", "MODEL", "DATA", "-o", "FOLDER"], "'folder' is there, and is not a regular file"),
    (["select", "MODEL", "DATA", "-o", "FOLDER"], "'folder' is there, and is not a regular file"),
    (["select", "MODEL", "DATA", "-o", "columns.xyz"], "use .npz, .npy, .csv or .tsv"),
    (["path", "DATA", "--plot", "path.xyz"], "is no name of a picture"),
    (["path", "DATA", "--plot", "FOLDER"], "'folder' is there, and is not a regular file"),
    (["path", "DATA", "-o", "FOLDER"], "'folder' is there, and is not a regular file"),
    (["path", "DATA", "-e", "gmeb"], "the estimator gmeb has one solution"),
    (["path", "DATA", "--ks", "0"], "'0' is no number of features"),
    (["path", "DATA", "--cv", "3", "--n-splits", "2"], "--n-splits and --test exclude each other"),
    (["path", "DATA", "--scoring", "f1_marco"],
     "'f1_marco' is no score of scikit-learn: use others, as f1_macro"),
    (["path", "DATA", "--scoring", "accuracy,accuracy"], "'accuracy' is named twice"),
    (["path", "DATA", "--scoring", "f1"],
     "f1 is that of a positive class: name it by --pos-label, one of calm, loud"),
    (["path", "DATA", "--scoring", "f1", "--pos-label", "odd"], "odd is not one of two classes"),
    (["permute", "DATA", "-e", "gmeb"], "the estimator gmeb has no gains of single features"),
    (["permute", "DATA", "-k", "3"], "all features are compared: leave --k out"),
    (["permute", "DATA", "-o", "FOLDER"], "'folder' is there, and is not a regular file"),
    (["demo", "--device", "abacus"], "unknown device 'abacus'"),
    (["nothing"], "No such command 'nothing'"),
]  # fmt: skip
_FAILURES = [
    (["fit", "missing.tsv", "-o", "m"], "missing.tsv: No such file or directory"),
    (["fit", "UNLABELLED", "-o", "m"], "holds no labels: name their column with --label"),
    (["fit", "DATA", "-o", "m", "--device", "cuda:99"], "cuda:99"),
    (["predict", "DATA", "DATA"], "is not a model file of gpucenters"),
    (["predict", "missing", "DATA"], "missing: No such file or directory"),
    (["permute", "DATA", "--groups", "missing"], "missing: No such file or directory"),
    (["predict", "MODEL", "TEXTS"], "holds texts, and the model takes numbers"),
    (["predict", "MODEL", "OTHER"], "lacks 1 column of the 2 that the model takes"),
    (["predict", "MODEL", "NARROW"], "7 features"),
    (["select", "MODEL", "DATA", "-o", "c.npy", "-k", "5"], "--full"),
    (["fit", "OTHER", "-o", "m", "--text", "t"], "--text is for tsv, csv, parquet, feather, and"),
    (["fit", "TEXTS", "-o", "m", "--label", "no"], "there is no column 'no' for --label; the"),
    (["fit", "latin.tsv", "-o", "m"], "(such as --encoding latin-1)"),
    (["fit", "zero.svm", "-o", "m"], "say --zero-based."),
    (["fit", "empty.npz", "-o", "m", "--missing", "median"],
     "empty.npz: the column 2 has no value, and so no median: leave it out.\n"),
    (["fit", "empty.csv", "-o", "m", "--missing", "median"],
     "empty.csv: the column 'a' has no value, and so no median: leave it out by --drop.\n"),
    (["fit", "twice.csv", "-o", "m"], "line 1, column 3: the column 'a' is there 2 times: rename "
     "all but one, or leave all out, --drop a."),
    (["fit", "text=1.csv", "-o", "m"],
     "text=1.csv, line 2, column 1: 'u' in the column 'kind' is no number. If the column is no "
     "feature, say what it is: --label, --text, --id or --drop"),
    (["fit", "semicolons.csv", "-o", "m"],
     "line 1, column 1: there is no comma in this line, but ';': name the separator, --sep ';'."),
    (["fit", "quoted.txt", "-o", "m", "--label", "b"], "name the separator, --sep ' '."),
    (["fit", "tabs.csv", "-o", "m"], r"name the separator, --sep '\t'."),
    (["fit", "bare.csv", "-o", "m"],
     "line 1, column 1: this line holds numbers, as '1.5', where the names of the columns are "
     "expected. Where it is a sample, say --no-header: "),
    (["fit", "gap.csv", "-o", "m"],
     "gap.csv, line 3, column 3: the value in the column 'a' is missing: --missing says"),
    (["fit", "comma.csv", "-o", "m", "--sep", ";"], "is a decimal point, say --decimal ','."),
    (["fit", "text.tsv", "-o", "m"],
     "this line holds 'text' and 'a b': say --header where these are names of columns, and "
     "--no-header where they are"),
    (["predict", "MODEL", "DATA", "--missing", "median"], "the model holds no medians: fit it wi"),
    (["fit", "ragged.csv", "-o", "m"], "this row has 1 field, not 2."),
    (["fit", "missing", "-o", "m"], "missing: No such file or directory"),
    (["fit", "few.csv", "-o", "m", "--label", "kind", "--test-size", "0.2"],
     "--test-size 0.2 of 4 samples"),
    (["path", "few.csv", "--label", "kind"], "--cv 5 folds need as many samples of a class"),
    (["path", "few.csv", "--label", "kind", "--n-splits", "2"], "--test-size"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [(2, *case) for case in _USAGE] + [(1, *case) for case in _FAILURES],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_what_is_wrong_is_said_on_stderr(
    run: Run,
    numbers: str,
    texts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    arguments: list[str],
    message: str,
) -> None:
    X, y, names = _numbers()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    run("fit", numbers, "-o", "model", "-k", "2")
    np.savez("other.npz", X=X, y=y, feature_names=["new", *names[1:]])
    np.savez("narrow.npz", X=X[:, 1:], y=y)
    np.savez("unlabelled.npz", X=X)
    Path("text=1.csv").write_text("kind,a\nu,1\n")
    Path("twice.csv").write_text("a,a,label\n1,2,u\n")
    Path("quoted.txt").write_text('"a" "b"\n"1" 1 "u"\n')
    np.savez("empty.npz", X=np.where(np.arange(M) == 2, np.nan, X), y=y)
    Path("empty.csv").write_text("a,b,label\n,1,u\n,2,v\n")
    Path("few.csv").write_text("kind,a\nu,1\nu,2\nv,3\nv,4\n")
    Path("semicolons.csv").write_text("label;a\nu;1\n")
    Path("tabs.csv").write_text("label\ta\nu\t1\n")
    Path("bare.csv").write_text("1.5,2,u\n2,3,v\n")
    Path("gap.csv").write_text("label,a\nu,1\nv,NA\n")
    Path("comma.csv").write_text("label;a\nu;1,5\nv;2\n")
    Path("text.tsv").write_text("text\ta b\nlabel\tb c\n")
    Path("ragged.csv").write_text("label,a\nu\n")
    Path("latin.tsv").write_bytes(b"label\ttext\na\t\xe9\n")
    Path("zero.svm").write_text("1 0:2\n")
    Path("folder").mkdir()
    there = {"DATA": numbers, "TEXTS": texts, "MODEL": "model", "FOLDER": "folder"}
    there |= {n: f"{n.lower()}.npz" for n in ("OTHER", "NARROW", "UNLABELLED")}
    before = sorted(Path.cwd().iterdir())
    run(*(there.get(argument, argument) for argument in arguments), code=code)
    assert message in run.err and run.out == ""
    if code == 1:
        lines = [line for line in run.err.splitlines() if not line.startswith("model: ")]
        assert len(lines) == 1 and lines[0].startswith("error: ")
    assert sorted(Path.cwd().iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "DATA", "-o", "LINK"],
        ["fit", "OTHER", "-o", "DATA", "--labels", "DATA"],
        ["fit", "OTHER", "-o", "DATA", "--test", "DATA"],
        ["fit", "OTHER", "-o", "DATA", "--test", "OTHER", "--test-labels", "DATA"],
        ["predict", "OTHER", "DATA", "-o", "LINK"],
        ["predict", "DATA", "OTHER", "-o", "LINK"],
        ["predict", "OTHER", "OTHER", "--labels", "DATA", "-o", "LINK"],
        ["select", "OTHER", "DATA", "-o", "LINK"],
        ["select", "DATA", "OTHER", "-o", "LINK"],
        ["path", "DATA", "-o", "LINK"],
        ["path", "DATA", "--plot", "LINK"],
        ["path", "OTHER", "--plot", "new.svg", "-o", "./new.svg"],
        ["fit", ".", "-o", "LINK"],
    ],
    ids=" ".join,
)
def test_no_output_replaces_a_file_that_the_command_uses(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    for name in ("DATA", "OTHER"):
        Path(name).write_text("kept")
    Path("LINK").hardlink_to("DATA")
    run(*arguments, code=2)
    assert "would replace" in run.err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("DATA", "OTHER", "LINK"), "kept"
    )


def test_strings_from_data_send_nothing_to_the_terminal(run: Run, tmp_path: Path) -> None:
    X, y, names = _numbers()
    data, model = tmp_path / "evil.npz", tmp_path / "model"
    labels = np.where(y == "loud", EVIL, "two\nlines")
    np.savez(data, X=X, y=labels, feature_names=names)
    printed = [
        run("fit", data, "-o", model, "--test-size", "0.3"),
        run("inspect", model),
        run("predict", model, data, "--proba"),
        run("path", data, "--ks", "1"),
    ]
    assert not re.search(r"[^\n\t -~─-╿▀-█]", "".join(printed))
    assert r"\x1b[31mred\x1b]0;title\x07" in printed[1] and "[bold]b[/]" in printed[1]
    assert printed[2].splitlines()[0] == "class\t\\x1b[31mred\\x1b]0;title\\x07\ttwo\\nlines"
    run("predict", model, tmp_path / EVIL, code=1)
    assert "\x1b" not in run.err and "\\x1b[31mred" in run.err
    assert run.json("inspect", model)["classes"] == sorted({*labels.tolist()})


@pytest.mark.filterwarnings("default")
def test_warnings_are_lines_on_stderr(run: Run, numbers: str, tmp_path: Path) -> None:
    run("fit", numbers, "-o", tmp_path / "model", "-k", "99")
    assert "warning: --k 99 is greater than n_features=8." in run.err


def test_an_interrupt_leaves_no_half_written_file(
    run: Run, numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    run("fit", numbers, "-o", model)
    before, content = sorted(tmp_path.iterdir()), model.read_bytes()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gpucenters.files.container._checksum", interrupted)
        run("fit", numbers, "-o", model, "-k", "1", code=130)
    with monkeypatch.context() as patch:
        patch.setattr(L2CenterClassifier, "predict", interrupted)
        run("predict", model, numbers, "-o", tmp_path / "out.tsv", code=130)
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array", interrupted)
        run("select", model, numbers, "-o", tmp_path / "out.npy", code=130)
        assert run.err.endswith("interrupted\n")
    assert sorted(tmp_path.iterdir()) == before and model.read_bytes() == content


@pytest.mark.parametrize("command", [["devices"], ["devices", "--json"], ["predict"]])
def test_output_that_nobody_reads_ends_a_command_quietly(
    numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], capfd: Any
) -> None:
    if command == ["predict"]:
        command = ["predict", str(tmp_path / "model"), numbers]
        assert main(["fit", numbers, "-o", command[1]]) == 0
        capfd.readouterr()
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(command) == 141
    assert capfd.readouterr().err == ""


def _shell(command: str, *arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line of the shell, with gpucenters as $G."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}", "bash", *map(str, arguments)],
        env=os.environ | {"G": f"{sys.executable} -m gpucenters"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_a_terminal_cannot_show_is_printed_as_an_escape(
    run: Run, numbers: str, tmp_path: Path
) -> None:
    X, y, _ = _numbers()
    data, model = tmp_path / "data.npz", tmp_path / "model"
    np.savez(data, X=X, y=np.where(y == "loud", "größer", "kleiner"))
    command = "$G fit $1 -o $2 --test $1 && $G inspect $2"
    done = _shell(command, data, model, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert r"gr\xf6\xdfer" in done.stdout
    done = _shell("$G path $1 --ks 1,2,3", data, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "################  best" in done.stdout
    assert "\\u" not in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_streams_that_are_full_or_closed_are_named(run: Run, numbers: str, tmp_path: Path) -> None:
    run("fit", numbers, "-o", tmp_path / "model")
    full = "error: standard output: No space left on device\n"
    closed = "error: standard output: Bad file descriptor\n"
    for command, message in (
        ("$G inspect $1 > /dev/full", full),
        ("$G predict $1 $2 > /dev/full", full),
        ("$G inspect $1 >&-", closed),
        ("$G predict $1 - <&-", "error: standard input, line 1, column 1: there are no samples.\n"),
    ):
        done = _shell(command, tmp_path / "model", numbers)
        assert (done.returncode, done.stderr) == (1, message)
    done = _shell("$G inspect $1 2>&-", tmp_path / "model")
    assert done.returncode == 0 and "L2CenterClassifier" in done.stdout


def test_a_full_disk_is_reported_with_the_name_of_the_file(
    run: Run, numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    run("fit", numbers, "-o", tmp_path / "model", code=1)
    assert run.err.endswith(f"error: {tmp_path / 'model'}: No space left on device\n")


def test_an_interrupt_while_modules_are_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    for name in [n for n in sys.modules if n.startswith("gpucenters.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", Interrupted("typer"))
    assert main(["devices"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_sigterm_is_an_interrupt() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        app.stop_on_sigterm()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_the_command_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in [n for n in sys.modules if n.startswith(("gpucenters.cli.", "rich."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    run("devices", code=2)
    assert "pip install 'gpucenters[cli]'" in run.err and run.out == ""


def test_an_error_has_its_traceback_where_it_is_asked_for(run: Run) -> None:
    with pytest.raises(FileNotFoundError):
        main(["--traceback", "inspect", "missing"])


# --- the small ones ----------------------------------------------------------------------------


def test_devices_are_listed(run: Run) -> None:
    assert "usable" in run("devices") and "NumPy on the host" in run.out
    assert run.json("devices")[0] == {
        "name": "cpu", "usable": True, "description": "NumPy on the host"
    }  # fmt: skip


def test_no_part_of_the_help_is_taken_for_markup(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert "Number of folds. [default: (5)]" in " ".join(run("path", "--help").split())
    commands: Any = typer.main.get_command(app.app)
    for command in commands.commands.values():
        for parameter in command.params:
            assert "[" not in (parameter.help or "")


def test_help_names_the_formats_of_the_readers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert ", ".join(FORMATS) in run("fit", "--help")


def test_help_says_of_shared_options_what_they_are_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    for command, words in (
        ("fit", "Held-out data, for the accuracy."),
        ("path", "Test data in place of folds."),
        ("check", "What to check."),
    ):
        assert words in " ".join(run(command, "--help").split())


def test_the_demo_prints_both_data_sets_and_where_to_go_on() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpucenters", "demo", "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == ""
    for text in ("usable", "Breast cancer", "worst concave points", "200,000 documents x 100,000"):
        assert text in done.stdout
    # The accuracy of all informative words, which the model reaches with 500 of them.
    assert "right in 0.838" in done.stdout
    assert re.search(r"500 │ +0\.\d+ │ +0\.838 │ +0\.\d+ │ +500 ", done.stdout)
    assert "gpucenters check --device cuda" in done.stdout and "permutation_gains" in done.stdout
