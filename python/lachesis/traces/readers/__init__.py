"""Readers, one a format. `read` recognises the format; see `registry`.

Import from `lachesis.traces`, or from the modules here.
"""
