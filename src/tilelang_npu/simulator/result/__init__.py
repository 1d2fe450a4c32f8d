"""What a launch tells: times, findings, timeline, report."""
