"""Fit, predict and transform where X is in partitions on a Dask cluster.

The statistics of the partitions are made where these are, merged, and solved once, by the caller.
Needs the extra ``dask``.
"""

from .fit_predict import decision_function, fit, predict, predict_proba, transform

__all__ = ["decision_function", "fit", "predict", "predict_proba", "transform"]
