from __future__ import annotations

import scipy.special as _special
from cupy._fake.names import MEMBERS as _MEMBERS
from cupy._generic import wrap as _wrap

for _name in _MEMBERS["cupyx.scipy.special"]:
    _value = getattr(_special, _name, None)
    if callable(_value) and not isinstance(_value, type):
        globals()[_name] = _wrap(f"cupyx.scipy.special.{_name}", _value)
