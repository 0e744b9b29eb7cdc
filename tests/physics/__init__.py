"""The engine against closed forms, hand-worked cases and published figures."""
