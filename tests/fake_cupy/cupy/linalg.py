from __future__ import annotations

import numpy as _np
from cupy._fake.names import MEMBERS as _MEMBERS
from cupy._generic import wrap as _wrap

LinAlgError = _np.linalg.LinAlgError
for _name in _MEMBERS["cupy.linalg"]:
    _value = getattr(_np.linalg, _name, None)
    if callable(_value) and not isinstance(_value, type):
        globals()[_name] = _wrap(f"cupy.linalg.{_name}", _value)
