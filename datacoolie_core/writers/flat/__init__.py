"""The writer of flat files: stage, claim, publish, commit by one replacement of a manifest."""
