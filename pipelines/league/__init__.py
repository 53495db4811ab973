"""The league: every congestion control on the same drawn scenarios, ranked with intervals."""
