"""GMEB: the globally best scaled margin classifier, solved with a certificate.

D. Peleg and R. Meir, "Feature Selection by Global Minimization of a Generalization Bound", 2005.
"""
