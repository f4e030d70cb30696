"""Speed and memory, as ratios against peers in one run: ``python -m bench --help``."""
