"""The bench: our systems and other libraries, trained and scored on the same data in one run."""
