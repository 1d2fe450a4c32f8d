"""Passes that take HIVM of other tools to the form that the passes on HIVM work on."""
