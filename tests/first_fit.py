"""A first fit as a new user makes it, with nothing installed but the wheel's own dependencies."""

import importlib.util

from sklearn.datasets import load_breast_cancer

import gpucenters

assert "site-packages" in gpucenters.__file__, "this is to run from the wheel"
assert importlib.util.find_spec("cupy") is None
X, y = load_breast_cancer(return_X_y=True)
for kind in (gpucenters.L2CenterClassifier, gpucenters.L1CenterClassifier):
    model = kind(k=5, scale="std").fit(X, y)
    accuracy = model.score(X, y)
    print(f"{kind.__name__} {gpucenters.__version__}: {model.support_} accuracy {accuracy:.3f}")
    assert len(model.support_) == 5
    assert accuracy > 0.9
