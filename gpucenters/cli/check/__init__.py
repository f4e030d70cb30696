"""``gpucenters check``: whether this machine computes what it should, and how fast."""
