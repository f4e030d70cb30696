"""Files of fitted models: one portable file without pickle."""

from .model import load, save

__all__ = ["load", "save"]
