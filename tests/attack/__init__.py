"""Programs that try to break the library; run by ``make attack``, never by pytest.

An attack is a module with ``attack(rng, report)``, which makes and checks one random problem. Its
constants are ``PROBLEMS`` (how many by default), ``CHUNK`` (how many in one process) ``LIMIT``
(seconds that one problem may take) and ``MEMORY`` (bytes of address space of a process).
"""

import sys
from pathlib import Path

# The helpers of the suite are modules of the folder above.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
