"""The results of a launch: times, hazards, timeline, reports and profile."""
