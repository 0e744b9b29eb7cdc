"""How well the built-in corpora meet the published figures: measurements and the provenance page.

Nothing here runs when the corpora are used.
"""
