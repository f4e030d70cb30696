"""``python -m gpucenters``."""

from gpucenters.cli import main

raise SystemExit(main())
