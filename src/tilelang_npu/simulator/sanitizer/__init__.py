"""The sanitizer: searches for hazards in the record of a run, one file for each kind of hazard."""
