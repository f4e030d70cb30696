"""The format of model files: a document and arrays behind a checksum, and values as JSON."""
