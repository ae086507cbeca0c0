// The report alone.
