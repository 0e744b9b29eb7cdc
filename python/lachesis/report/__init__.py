"""Results for people: tables, sentences and plots. Reads results, never the engine."""
