from __future__ import annotations

import numpy as _np
from cupy._fake.names import MEMBERS as _MEMBERS
from cupy._generic import wrap as _wrap

for _name in _MEMBERS["cupy.fft"]:
    _value = getattr(_np.fft, _name, None)
    if callable(_value):
        globals()[_name] = _wrap(
            f"cupy.fft.{_name}", _value, needs_array=not _name.endswith("fftfreq")
        )
